def topk_softmax():
    return "topk_softmax"


def __getattr__(name):
    if name == "lazy":
        return "lazy"
    raise AttributeError(f"moe has no {name}")
