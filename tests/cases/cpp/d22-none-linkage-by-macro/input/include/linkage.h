#pragma once
#define PLAIN_C extern "C"
#define INTERNAL static __attribute__((noinline))
