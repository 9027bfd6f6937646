"""What ONNX and Antichain have alike, for both directions: operators, the attributes of windows, and forms
that are written as several operators."""

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
    "relu6": "Clip(x, 0, 6)",
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
_FLOOR = {"nearest_mode": "floor"}
RESIZES = {  # mode and align_corners: ONNX's mode, where it takes pixels to be, and how it rounds
    ("bilinear", False): {"mode": "linear", "coordinate_transformation_mode": "half_pixel"},
    ("bilinear", True): {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
    ("nearest", False): {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", **_FLOOR},
}
HARDSIGMOID = {"alpha": 1 / 6, "beta": 0.5}

# Functions of layers/elementwise_table.inc that ONNX has, too.
FUNCTIONS_OF_ONE = {
    **{"abs": "Abs", "cos": "Cos", "exp": "Exp", "log": "Log", "negate": "Neg", "relu": "Relu"},
    **{"sigmoid": "Sigmoid", "sin": "Sin", "softplus": "Softplus", "sqrt": "Sqrt", "tanh": "Tanh"},
}
FUNCTIONS_OF_TWO = {
    **{"add": "Add", "divide": "Div", "maximum": "Max", "minimum": "Min", "multiply": "Mul"},
    **{"power": "Pow", "subtract": "Sub"},
}
COMPARISONS = {
    **{"equal": "Equal", "greater": "Greater", "greater_equal": "GreaterOrEqual"},
    **{"less": "Less", "less_equal": "LessOrEqual"},
}
