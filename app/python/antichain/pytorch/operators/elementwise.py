"""Rows of what computes each number by itself, of one tensor or of two, dropout among them."""

from antichain.pytorch.calls import Kind, Tensor
from antichain.pytorch.operators.products import with_rows
from antichain.pytorch.operators.table import ROWS, is_number
from antichain.pytorch.translate import Noise
from antichain.translation import Looked, Value, only, refuse_if


# Functions of every number


@ROWS.row("widened")
def widened(t, x, *_, **__):
    """Truth values and whole numbers are numbers."""
    return x


def activation(function):
    return lambda t, x: t.activate(x, function)


for name in ("hardsigmoid", "hardswish", "relu6", "sigmoid", "silu"):
    ROWS[name] = activation(name)
ROWS["relu"] = lambda t, x: t.same_axes("relu", x)
ROWS["clamp_min"] = lambda t, x, min: t.clamp(x, min, None)


@ROWS.row("gelu")
def gelu(t, x, approximate="none"):
    return t.activate(x, "gelu_tanh" if approximate == "tanh" else "gelu")


# Each is a formula of x, in the steps of layers/elementwise.h.
FORMULAS = {
    "abs": ["abs a"],
    "cos": ["cos a"],
    "cosh": ["exp a", "negate a", "exp s1", "add s0 s2", "multiply s3 0.5"],
    "exp": ["exp a"],
    "exp2": ["multiply a 0.6931471805599453", "exp s0"],
    "expm1": ["expm1 a"],
    "isnan": ["not_equal a a"],
    "log": ["log a"],
    "log10": ["log a", "multiply s0 0.4342944819032518"],
    "log1p": ["log1p a"],
    "log2": ["log a", "multiply s0 1.4426950408889634"],
    "log_sigmoid": ["negate a", "softplus s0", "negate s1"],
    "logit": ["subtract 1 a", "divide a s0", "log s1"],
    "logical_not": ["equal a 0"],
    "mish": ["mish a"],
    "neg": ["negate a"],
    "reciprocal": ["divide 1 a"],
    "rsqrt": ["sqrt a", "divide 1 s0"],
    "selu": ["elu a 1.6732632423543772", "multiply s0 1.0507009873554805"],
    "sign": ["greater a 0", "less a 0", "subtract s0 s1"],
    "sin": ["sin a"],
    "sinc": [
        *("multiply a 3.141592653589793", "equal a 0", "where s1 1 s0"),
        *("sin s2", "divide s3 s2", "where s1 1 s4"),
    ],
    "sinh": ["exp a", "negate a", "exp s1", "subtract s0 s2", "multiply s3 0.5"],
    "softsign": ["abs a", "add s0 1", "divide a s1"],
    "sqrt": ["sqrt a"],
    "square": ["multiply a a"],
    "tanh": ["tanh a"],
    "tanhshrink": ["tanh a", "subtract a s0"],
}
for names, steps in FORMULAS.items():
    ROWS.row(names)(lambda t, x, steps=steps: t.formula(steps, x))
ROWS["logsigmoid"] = ROWS["log_sigmoid"]
ROWS["negative"] = ROWS["neg"]


# These are of two tensors, of a tensor and a parameter, or of a tensor and a number.
OF_TWO = {
    ("eq", "equal"): ["equal a b"],
    ("ge", "greater_equal"): ["greater_equal a b"],
    ("gt", "greater"): ["greater a b"],
    ("hypot",): ["multiply a a", "multiply b b", "add s0 s1", "sqrt s2"],
    ("le", "less_equal"): ["less_equal a b"],
    ("logaddexp",): ["maximum a b", "subtract a b", "abs s1", "negate s2", "exp s3", "log1p s4", "add s0 s5"],
    ("logical_and",): ["not_equal a 0", "not_equal b 0", "multiply s0 s1"],
    ("logical_or",): ["not_equal a 0", "not_equal b 0", "maximum s0 s1"],
    ("lt", "less"): ["less a b"],
    ("maximum",): ["maximum a b"],
    ("minimum",): ["minimum a b"],
    ("ne", "not_equal"): ["not_equal a b"],
}
for names, steps in OF_TWO.items():
    ROWS.row(*names, raw=True)(lambda t, x, other, steps=steps: t.formula(steps, x, other))


# Those of whole numbers are of their bits.
OF_TRUTH_VALUES = {"__and__": "logical_and", "and_": "logical_and", "bitwise_and": "logical_and"}
OF_TRUTH_VALUES |= {"__or__": "logical_or", "or_": "logical_or", "bitwise_or": "logical_or"}
for name, of in OF_TRUTH_VALUES.items():

    @ROWS.row(name, raw=True)
    def of_truth_values(t, x, other, name=name, of=of):
        refuse_if(not t.call.truth, f"'{name}' of the bits of whole numbers")
        return ROWS[of](t, x, other)


@ROWS.row("bitwise_not", "__invert__", "invert")
def bitwise_not(t, x):
    refuse_if(not t.call.truth, "'bitwise_not' of the bits of whole numbers")
    return ROWS["logical_not"](t, x)


@ROWS.row("truth")
def truth(t, x, *_, **__):
    """Numbers are truth values."""
    return t.formula(["not_equal a 0"], x)


@ROWS.row("leaky_relu")
def leaky_relu(t, x, negative_slope=0.01):
    return t.formula(["leaky_relu a b"], x, negative_slope)


@ROWS.row("prelu")
def prelu(t, x, weight, axis=1):
    return t.formula(["leaky_relu a b"], x, weight, channels=axis)


@ROWS.row("elu")
def elu(t, x, alpha=1.0, scale=1, input_scale=1):
    only("elu of input_scale", input_scale, 1)
    return t.formula(["elu a b"] + (["multiply s0 c"] if scale != 1 else []), x, alpha, scale)


@ROWS.row("celu")
def celu(t, x, alpha=1.0):
    return t.formula(["divide a b", "expm1 s0", "multiply s1 b", "greater a 0", "where s3 a s2"], x, alpha)


@ROWS.row("softplus")
def softplus(t, x, beta=1, threshold=20):
    return t.formula(["multiply a b", "softplus s0", "divide s1 b"] if beta != 1 else ["softplus a"], x, beta)


@ROWS.row("hardshrink")
def hardshrink(t, x, lambd=0.5):
    return t.formula(["abs a", "greater s0 b", "where s1 a 0"], x, lambd)


@ROWS.row("softshrink")
def softshrink(t, x, lambd=0.5):
    return t.formula(["clamp a b c", "subtract a s0"], x, -lambd, lambd)


@ROWS.row("threshold", "_threshold")
def threshold(t, x, threshold, value):
    return t.formula(["greater a b", "where s0 a c"], x, threshold, value)


@ROWS.row("pow", raw=True)
def power(t, x, exponent):
    steps = {2: ["multiply a a"], 0.5: ["sqrt a"], -1: ["divide 1 a"], 1: ["add a 0"]}
    return t.formula(steps.get(exponent if is_number(exponent) else None, ["power a b"]), x, exponent)


@ROWS.row("where", raw=True)
def where(t, condition, input=None, other=None, **names):
    return t.formula(["where a b c"], condition, names.get("self", input), other)


@ROWS.row("masked_fill")
def masked_fill(t, x, mask, value):
    return t.formula(["where b c a"], x, mask, value)


@ROWS.row("addcmul", "addcdiv")
def addcmul(t, x, tensor1, tensor2, value=1):
    name = "multiply" if t.call.key == "addcmul" else "divide"
    return t.formula([f"{name} b c", f"multiply s0 {float(value)!r}", "add a s1"], x, tensor1, tensor2)


@ROWS.row("lerp")
def lerp(t, x, end, weight):
    return t.formula(["subtract b a", "multiply s0 c", "add a s1"], x, end, weight)


@ROWS.row("glu")
def glu(t, x, dim=-1):
    axis = t.axis(x, dim)
    first, gate = (t.part(x, axis, *ends) for ends in ((0, x.shape[axis] // 2), (x.shape[axis] // 2, None)))
    return t.multiply(first, t.activate(gate, "sigmoid"))


@ROWS.row("hardtanh", "clamp", "clip")
def clamp(t, x, min_val=-1, max_val=1, min=None, max=None):
    return t.clamp(x, *((min_val, max_val) if min is None and max is None else (min, max)))


@ROWS.row("dropout1d", "dropout2d", "dropout3d", samples=True)
def dropout_of_channels(t, x, p=0.5, training=True, train=True):
    return t.dropout(x, "stochastic_depth", float(p) if training and train else 0, drop="channel")


@ROWS.row("dropout")
def dropout(t, x, p=0.5, training=True, train=True):
    return t.dropout(x, "dropout", float(p) if training and train else 0)


@ROWS.row("stochastic_depth", samples=True)
def stochastic_depth(t, x, p, mode, training=True):
    return t.dropout(x, "stochastic_depth", float(p) if training else 0, drop=mode)


# Stochastic depth, as it is written by hand: x * x.new_empty(N, 1, 1, 1).bernoulli_(kept).div_(kept)


@ROWS.row("new_empty", "empty", "empty_like", raw=True)
def empty(t, *args, **_):
    return Noise(t.call.shape)


@ROWS.row("bernoulli", raw=True)
def bernoulli(t, x, p=None, generator=None):
    known = isinstance(x, Noise) and is_number(p)
    refuse_if(not known, "random numbers other than those of dropout and stochastic depth")
    return Noise(x.shape, float(p))


def drop_samples(t, x, noise):
    if noise.kept is None or noise.kept == 1:
        refuse_if(noise.kept is None, "random numbers other than those of dropout and stochastic depth")
        return x
    ones = (1,) * (x.rank - 1)
    modes = {(*x.shape[:2], *ones[1:]): "channel", (t.batch, *ones): "row", (1, *ones): "batch"}
    refuse_if(noise.shape not in modes, f"random numbers of the shape {noise.shape} for a tensor {x.shape}")
    # x / kept * noise is what x * (noise / kept) is.
    whole = None if noise.divided else t.before_formula(x, f"divide x0 {noise.kept!r}")
    y = t.dropout(whole or x, "stochastic_depth", round(1 - noise.kept, 9), drop=modes[noise.shape])
    return y if whole else t.multiply(y, noise.kept / (noise.divided or 1))


# Two tensors


@ROWS.row("add", raw=True)
def add(t, a, other, alpha=1):
    a, other = (other, a) if isinstance(a, Looked) else (a, other)
    if isinstance(other, Looked):
        refuse_if(isinstance(a, Looked) or alpha != 1, "a sum of embeddings of numbers that are computed")
        return with_rows(t, t.tensor(a), other)
    return t.add(a, other) if alpha == 1 else t.formula(["multiply b c", "add a s0"], a, other, alpha)


@ROWS.row("sub", raw=True)
def sub(t, a, other, alpha=1):
    if alpha != 1:
        return t.formula(["multiply b c", "subtract a s0"], a, other, alpha)
    return t.tensor(a) if other == 0 and is_number(other) else t.formula(["subtract a b"], a, other)


@ROWS.row("rsub", raw=True)
def rsub(t, a, other, alpha=1):
    return sub(t, other, a, alpha)


@ROWS.row("mul", raw=True)
def mul(t, a, other):
    a, b = (other, a) if isinstance(a, (Noise, Tensor)) else (a, other)
    if isinstance(b, Noise):
        return drop_samples(t, t.tensor(a), b)
    a, b = (b, a) if isinstance(b, Value) and isinstance(a, Value) and b.sampled > a.sampled else (a, b)
    scales = isinstance(a, Value) and a.sampled and a.plain and a.rank == 4
    scales = scales and isinstance(b, Tensor) and b.kind is Kind.parameter
    if scales and b.shape == (a.shape[1], 1, 1):
        return t.same_axes("layer_scale", a, parts={"": b})
    return t.multiply(a, b)


@ROWS.row("div", raw=True)
def div(t, a, other, rounding_mode=None):
    only("a quotient with rounding_mode", rounding_mode, None)
    if isinstance(a, Noise) and is_number(other):
        return Noise(a.shape, a.kept, float(other))
    return t.tensor(a) if is_number(other) and other == 1 else t.formula(["divide a b"], a, other)


@ROWS.row("detach", raw=True)
def detach(t, x):
    refuse_if(not isinstance(x, Tensor) or x.kind is not Kind.constant, "'detach'")
