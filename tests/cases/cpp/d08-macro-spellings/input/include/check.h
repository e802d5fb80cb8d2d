#pragma once
#define checked(expression) do { expression; } while (0)
