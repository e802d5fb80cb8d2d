from sgl_kernel.flash_attn import flash_attn_with_kvcache

out = flash_attn_with_kvcache(q, k_cache, v_cache, cache_seqlens=lens, ver=4)
out = flash_attn_with_kvcache(q, k_cache, v_cache, cache_seqlens=lens)
