def fp8_scaled_mm():
    return "fp8_scaled_mm"
