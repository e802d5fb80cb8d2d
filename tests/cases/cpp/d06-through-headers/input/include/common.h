#pragma once
#include "detail/kernels.h"
