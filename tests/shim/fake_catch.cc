// The C++ code that calls and catches.
#include <cstdio>
#include <exception>
#include <typeinfo>

// Calls f(argument). Returns 1 for a std::exception, whose type and text it writes, 2 for anything else, 0 for neither.
extern "C" int catch_call(void (*f)(void *), void *argument, char *type, char *what, size_t size) {
  type[0] = what[0] = '\0';
  try {
    f(argument);
  } catch (const std::exception &e) {
    std::snprintf(type, size, "%s", typeid(e).name());
    std::snprintf(what, size, "%s", e.what());
    return 1;
  } catch (...) {
    return 2;
  }
  return 0;
}
