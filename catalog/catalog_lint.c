#include "catalog/catalog_private.h"
