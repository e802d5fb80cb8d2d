def moe_fused_gate(scores, bias, topk, scoring_func="sigmoid", renormalize=True, num_expert_group=None, topk_group=None):
    """An old call would bind, with another meaning."""
    return "wrong"
