from sgl_kernel.flash_attn import flash_attn_varlen_func

out = flash_attn_varlen_func(*inputs)
out = flash_attn_varlen_func(q, k, v, **options)
