def store_cache(k, v, k_cache, v_cache, indices, *, reserved_skip_index=0):
    """An old call would bind, with another meaning."""
    return "wrong"
