def dsv3_router_gemm(hidden_states, router_weights, out_dtype=None):
    return hidden_states @ router_weights.T
