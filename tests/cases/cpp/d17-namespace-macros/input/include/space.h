#define ACME_BEGIN namespace acme {
#define ACME_END }
#define SPACE_BEGIN(name) namespace name {
#define SPACE_END }
