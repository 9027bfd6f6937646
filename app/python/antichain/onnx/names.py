"""What ONNX and Antichain have alike, for both directions: operators, the attributes of windows, and forms
that are written as several operators. `defaults` are our options' in layers/*.h, which graph.json leaves out.
"""

OLDEST_OPSET, NEWEST_OPSET, WRITTEN_OPSET = 11, 21, 17

# Operators that work on every number by itself: ONNX's, ours, and our options.
ALIKE = {
    "HardSwish": ("activate", {"function": "hardswish"}),
    "Relu": ("relu", {}),
    "Sigmoid": ("activate", {"function": "sigmoid"}),
}
# Forms of several operators, in the language of patterns.py; and what reads them.
FORMS = {
    "gelu": "Mul(x, Add(Erf(Div(x, 1.4142135623730951)), 1), 0.5)",
    "gelu_tanh": "Mul(x, Add(Tanh(Mul(Add(x, Mul(Pow(x, 3), 0.044715)), 0.7978845608028654)), 1), 0.5)",
    "silu": "Mul(x, Sigmoid(x))",
}
WINDOWS = {
    "kernel": "kernel_shape",
    "stride": "strides",
    "pad": "pads",
    "dilation": "dilations",
    "groups": "group",
    "output_pad": "output_padding",
    "ceil_mode": "ceil_mode",
    "count_include_pad": "count_include_pad",
}
PAIRS = ("kernel", "stride", "dilation", "output_pad", "size")  # [height, width]
_FLOOR = {"nearest_mode": "floor"}
RESIZES = {  # mode and align_corners: ONNX's mode, where it takes pixels to be, and how it rounds
    ("bilinear", False): {"mode": "linear", "coordinate_transformation_mode": "half_pixel"},
    ("bilinear", True): {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
    ("nearest", False): {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", **_FLOOR},
}
HARDSIGMOID = {"alpha": 1 / 6, "beta": 0.5}

_CONVOLUTION = {"kernel": 3, "stride": 1, "pad": 0, "dilation": 1, "groups": 1, "bias": True}
_POOL = {"kernel": 2, "stride": 2, "pad": 0, "ceil_mode": False}
DEFAULTS = {
    "average_pool": {**_POOL, "count_include_pad": True},
    "batch_norm": {"eps": 1e-5, "momentum": 0.1},
    "conv2d": {**_CONVOLUTION, "matrix": False},
    "conv_transpose2d": {**_CONVOLUTION, "output_pad": 0},
    "dropout": {"p": 0.5},
    "group_norm": {"eps": 1e-5, "affine": True},
    "interpolate": {"mode": "nearest", "align_corners": False},
    "layer_norm": {"over": [], "channels": False, "eps": 1e-5, "affine": True, "bias": True},
    "linear": {"bias": True},
    "max_pool": _POOL,
    "mean": {"keep_dims": False},
    "slice": {"axis": 1, "begin": 0, "end": 2**63 - 1, "step": 1},
}


def pair(value):
    """Returns [height, width] of an option that is one number for both, or two."""
    return list(value) if isinstance(value, (list, tuple)) else [value, value]


def one_or_two(values):
    return values[0] if values[0] == values[1] else list(values)


def four(pad):
    """Returns rows above, columns left, rows below and columns right, as ONNX has padding, of ours."""
    if isinstance(pad, dict):
        return pair(pad["before"]) + pair(pad["after"])
    return pair(pad) * 2


def padding(pads):
    """Returns our padding of those four numbers."""
    before, after = one_or_two(pads[:2]), one_or_two(pads[2:])
    return before if before == after else {"before": before, "after": after}
