"""The table: how each function of PyTorch becomes nodes, one row a function.

A row's arguments behind the Translation have the names and the order that PyTorch has. What it can't
translate it refuses with Unsupported, which names the option and its value; arguments that a row does not
list are refused by the table.
"""

import math

from antichain.graph_operators import pair as both_of, padding as padding_of
from antichain.pytorch.attention import causal as hides_later, hides
from antichain.pytorch.calls import Kind, Tensor
from antichain.pytorch.translate import Noise, parameter
from antichain.translation import Joined, Looked, Padded, Repeated, Table, Unsupported, Value, Widened
from antichain.translation import natural, only, refuse_if, same_padding

ROWS = Table()

# Of layers/: what graph.json knows.
OPERATORS = [
    "activate (gelu, hardsigmoid, hardswish, relu6, sigmoid, silu)",
    *(
        "adaptive_average_pool add attention average_pool batch_norm class_token computed concat conv2d "
        "conv_transpose2d dropout elementwise embedding flatten gather global_average_pool group_norm "
        "interpolate layer_norm layer_scale linear matmul max_pool mean multiply permute relu reshape "
        "rotary slice softmax spectral_norm stochastic_depth"
    ).split(),
]


def within(what, eps, momentum=0.1):
    refuse_if(not eps > 0, f"{what} eps {eps}")
    refuse_if(not 0 <= momentum <= 1, f"{what} momentum {momentum}")


def is_number(x):
    return isinstance(x, (int, float)) and not isinstance(x, bool)


def pair(x):
    values = [int(v) for v in x] if isinstance(x, (tuple, list)) else [int(x)]
    refuse_if(len(values) > 2, f"a size of {len(values)} numbers (images have a height and a width)")
    return both_of(values if len(values) == 2 else values[0])


def axes_of(t, x, axes):
    return [t.axis(x, int(a)) for a in (axes if isinstance(axes, (tuple, list)) else [axes])]


def sizes(args):
    """Returns the numbers of x.view(1, 2), which may also be written x.view((1, 2))."""
    return list(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else list(args)


def given(**tensors):
    """Returns those that are given."""
    return {own: tensor for own, tensor in tensors.items() if tensor is not None}


# Convolutions and linear layers


@ROWS.row("conv2d", raw=True)
def conv2d(t, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    x, zeros = t.padded_image(x, "conv2d")
    shape, dilation = t.weight(weight), pair(dilation)
    if padding == "same":
        pads = same_padding(x.shape[2:], (1, *shape[2:])[-2:], (1, 1), dilation)
    else:
        pads = [0] * 4 if padding == "valid" else pair(padding) * 2
    options = {"stride": pair(stride), "dilation": dilation, "groups": groups}
    pads = [a + b for a, b in zip(zeros, pads)]
    return t.conv(x, shape, given(weight=weight, bias=bias), pads, **options)


@ROWS.row("conv_transpose2d")
def conv_transpose2d(t, x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    x, shape = t.image_of(x, "conv_transpose2d"), t.weight(weight)
    options = {"stride": pair(stride), "output_pad": pair(output_padding), "dilation": pair(dilation)}
    return t.conv_transpose(x, shape, given(weight=weight, bias=bias), pair(padding) * 2, groups, **options)


@ROWS.row("linear")
def linear(t, x, weight, bias=None):
    return t.linear(x, t.weight(weight)[0], given(weight=weight, bias=bias))


# What has one dimension is an image of one row.


def in_line(row, of_lines):
    """Makes the row of an operator on N x C x L of that on images. `of_lines` are the arguments by position,
    those that have a number for the one dimension with what images have for the other."""

    def on_lines(t, x, *args, **named):
        pending = x.zeros if isinstance(x, Padded) else None
        x = t.tensor(x.of if pending else x)
        refuse_if(x.rank != 3, f"'{t.call.key}' of a tensor {t.text(x)} that is not N x C x L")
        image = t.reshape(x, (*x.shape[:2], 1, x.shape[2]), helper=True)
        given = dict(zip(of_lines, args))
        given.update(named)
        for name, other in of_lines.items():
            value = given.get(name)
            if other is not None and value not in (None, (), []) and not isinstance(value, str):
                given[name] = [other, value[0] if isinstance(value, (tuple, list)) else value]
        y = row(t, Padded(image, pending) if pending else image, **given)
        y, *more = y if isinstance(y, tuple) else (y,)
        y = t.reshape(y, (*y.shape[:2], y.shape[3]))
        return (y, *more) if more else y

    return on_lines


CONVOLVED = {"weight": None, "bias": None, "stride": 1, "padding": 0, "dilation": 1, "groups": None}
TRANSPOSED = {**dict.fromkeys(("weight", "bias")), "stride": 1, "padding": 0, "output_padding": 0}
TRANSPOSED |= {"groups": None, "dilation": 1}
ROWS.row("conv1d", raw=True)(in_line(conv2d, CONVOLVED))
ROWS.row("conv_transpose1d")(in_line(conv_transpose2d, TRANSPOSED))


@ROWS.row("pad", "constant_pad_nd")
def pad(t, x, pad, mode="constant", value=0):
    pad = [int(n) for n in pad]
    ends = [(x.rank - 1 - i // 2, pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]
    if mode != "constant":
        for axis, before, after in ends:
            x = edges(t, x, axis, before, after, mode)
        return x
    if x.rank not in (3, 4) or any(pad[2 * (x.rank - 2) :]) or min(pad) < 0 or value:
        return t.within(x, ends, value or 0)
    x = t.plain(x)
    left, right, top, bottom = (pad + [0, 0])[:4]
    return Padded(x, [top, left, bottom, right]) if any(pad) else x


def edges(t, x, axis, before, after, mode):
    """Returns x with what PyTorch's modes of padding put before and after it along an axis."""
    extent = x.shape[axis]
    only("padding of mode", mode, "circular", "reflect", "replicate")
    refuse_if(min(before, after) < 0, f"padding by {before} and {after}")
    if mode == "circular":
        places = [(extent - before, extent)] * (before > 0), [(0, after)] * (after > 0)
    elif mode == "reflect":
        turned = range(before, 0, -1), range(extent - 2, extent - 2 - after, -1)
        places = [[(i, i + 1) for i in side] for side in turned]
    else:
        places = [(0, 1)] * before, [(extent - 1, extent)] * after
    first, last = ([t.part(x, axis, *place) for place in of] for of in places)
    return t.concat([*first, x, *last], axis)


for name, mode in (("reflection_pad", "reflect"), ("replication_pad", "replicate")):
    ROWS.row(f"{name}1d", f"{name}2d")(lambda t, x, padding, mode=mode: pad(t, x, padding, mode))


# Normalisation


@ROWS.row("batch_norm")
def batch_norm(
    t, x, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5,
    cudnn_enabled=None,
):
    if isinstance(x, Value) and not x.sampled:
        return norm_of_parameters(t, x, running_mean, weight, bias, training, eps)
    refuse_if((weight is None) != (bias is None), "batch_norm with a weight or a bias alone")
    # Evaluation would give each sample what the others of its micro-batch make of it.
    refuse_if(running_mean is None, "batch_norm without running statistics")
    refuse_if(momentum is None, "batch_norm with momentum None, a mean over all batches,")
    within("batch_norm with", eps, momentum)
    parts = given(weight=weight, bias=bias, running_mean=running_mean, running_var=running_var)
    options = {"eps": float(eps), "momentum": float(momentum)}
    if not training:
        options["fixed_statistics"] = True
    y = t.batch_norm(x, options, parts)
    count = (running_mean.name.rpartition(".")[0] + ".num_batches_tracked").removeprefix(".")
    t.enter(count, "num_batches_tracked")
    t.buffers.append(count)
    return y


def norm_of_parameters(t, x, running_mean, weight, bias, training, eps):
    """Returns a weight 1 x K x …, of which each filter is normalised, as timm standardises weights."""
    once = training and running_mean is None and bias is None and x.shape[0] == 1
    refuse_if(not once, "batch_norm of a weight that is not standardised")
    filters = t.reshape(x, (x.shape[1], math.prod(x.shape[2:])), helper=True)
    y = t.group_norm(filters, x.shape[1], float(eps), {})
    if weight is not None:
        weight = t.reshape(t.tensor(weight), (x.shape[1], 1), helper=True)
        y = t.formula(["multiply a b"], y, weight)
    return t.reshape(y, x.shape)


@ROWS.row("layer_norm")
def layer_norm(t, x, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=None):
    over = list(normalized_shape)
    within("layer_norm with", eps)
    shown = over if len(over) > 1 or x.rank == 2 else []
    return t.layer_norm(x, -len(over), shown, float(eps), given(weight=weight, bias=bias))


@ROWS.row("rms_norm")
def rms_norm(t, x, weight, eps):
    options = {"eps": eps, "bias": False, "centred": False}
    return t.emit("layer_norm", [t.plain(x)], options, parts=given(weight=weight))


@ROWS.row("group_norm")
def group_norm(t, x, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=None):
    refuse_if((weight is None) != (bias is None), "group_norm with a weight and without a bias")
    within("group_norm with", eps)
    return t.group_norm(x, num_groups, float(eps), given(weight=weight, bias=bias))


@ROWS.row("instance_norm")
def instance_norm(
    t,
    x,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-5,
    cudnn_enabled=None,
):
    refuse_if(running_mean is not None, "instance_norm with running statistics")
    return group_norm(t, x, x.shape[1], weight, bias, eps)


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
    "exp": ["exp a"],
    "expm1": ["expm1 a"],
    "log": ["log a"],
    "log10": ["log a", "multiply s0 0.4342944819032518"],
    "log1p": ["log1p a"],
    "log2": ["log a", "multiply s0 1.4426950408889634"],
    "log_sigmoid": ["negate a", "softplus s0", "negate s1"],
    "logical_not": ["equal a 0"],
    "mish": ["softplus a", "tanh s0", "multiply a s1"],
    "neg": ["negate a"],
    "reciprocal": ["divide 1 a"],
    "rsqrt": ["sqrt a", "divide 1 s0"],
    "selu": ["elu a 1.6732632423543772", "multiply s0 1.0507009873554805"],
    "sin": ["sin a"],
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
    ("le", "less_equal"): ["less_equal a b"],
    ("logical_and",): ["not_equal a 0", "not_equal b 0", "multiply s0 s1"],
    ("logical_or",): ["not_equal a 0", "not_equal b 0", "maximum s0 s1"],
    ("lt", "less"): ["less a b"],
    ("maximum",): ["maximum a b"],
    ("minimum",): ["minimum a b"],
    ("ne", "not_equal"): ["not_equal a b"],
}
for names, steps in OF_TWO.items():
    ROWS.row(*names, raw=True)(lambda t, x, other, steps=steps: t.formula(steps, x, other))


@ROWS.row("leaky_relu")
def leaky_relu(t, x, negative_slope=0.01):
    return t.formula(["leaky_relu a b"], x, negative_slope)


@ROWS.row("prelu")
def prelu(t, x, weight):
    return t.formula(["leaky_relu a b"], x, weight, channels=True)


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


@ROWS.row("hardtanh", "clamp", "clip")
def clamp(t, x, min_val=-1, max_val=1, min=None, max=None):
    return t.clamp(x, *((min_val, max_val) if min is None and max is None else (min, max)))


@ROWS.row("softmax")
def softmax(t, x, dim, _stacklevel=None, dtype=None, half_to_float=None):
    return t.softmax(x, t.axis(x, dim))


@ROWS.row("log_softmax")
def log_softmax(t, x, dim, _stacklevel=None, dtype=None, half_to_float=None):
    return t.formula(["subtract a b"], *log_of_sum(t, x, dim))


def log_of_sum(t, x, dim):
    """Returns x less its largest numbers along axes, and the logarithm of the sum of its exponentials."""
    x = t.formula(["subtract a b"], x, largest(t, x, dim, True))
    return x, t.formula(["log a"], sum_of(t, t.formula(["exp a"], x), dim=dim, keepdim=True))


@ROWS.row("logsumexp")
def logsumexp(t, x, dim, keepdim=False):
    most = largest(t, x, dim, True)
    y = t.formula(["add a b"], log_of_sum(t, x, dim)[1], most)
    return y if keepdim else t.reshape(y, t.call.shape)


@ROWS.row("dropout1d", "dropout2d", "dropout3d")
def dropout_of_channels(t, x, p=0.5, training=True, train=True):
    return t.dropout(x, "stochastic_depth", float(p) if training and train else 0, drop="channel")


@ROWS.row("dropout")
def dropout(t, x, p=0.5, training=True, train=True):
    return t.dropout(x, "dropout", float(p) if training and train else 0)


@ROWS.row("stochastic_depth")
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
    return x


@ROWS.row("expand", "broadcast_to", "expand_as")
def expand(t, x, *_, **__):
    to = t.call.shape
    if not x.sampled:
        x = t.reshape(x, (1,) * (len(to) - x.rank) + x.shape, helper=True)
    refuse_if(len(to) != x.rank, f"an expansion of {x.shape} to {to} (it keeps the number of axes)")
    return x if to == x.shape else Widened(x, to)


# Shapes


@ROWS.row(
    "view", "reshape", "unflatten", "squeeze", "unsqueeze", "flatten", "view_as", "reshape_as", raw=True
)
def reshape(t, x, *_, **__):
    shape = tuple(t.call.shape)
    if isinstance(x, Looked):
        return x
    if isinstance(x, Widened):
        return repeated(t, x, shape)
    if isinstance(x, Joined):
        return t.reshape(x.of, shape)
    x = t.tensor(x)
    for axes in range(2, x.rank + 1 if x.sampled else 0):
        joined = Joined(x, axes)
        if shape == joined.shape and x.shape[axes - 1] > 1:
            return joined
    return t.reshape(x, shape)


def repeated(t, x, shape):
    """Returns what is expanded along one axis and joined with the axis before: x[:, :, None].expand(…)."""
    wide = [axis for axis, extents in enumerate(zip(x.of.shape, x.shape)) if len({*extents}) > 1]
    axis = wide[0] - 1 if len(wide) == 1 else -1
    before = x.of.shape[: axis + 1] + x.of.shape[axis + 2 :]
    joined = (*before[:axis], before[axis] * x.shape[axis + 1], *before[axis + 1 :])
    refuse_if(axis < 1 or shape != joined, "an expanded tensor for anything but a product")
    y = t.reshape(x.of, before, helper=True)
    return Repeated(t.permuted.get(y.node, y) if y.plain else y, axis, x.shape[axis + 1])


@ROWS.row("repeat_interleave")
def repeat_interleave(t, x, repeats, dim=None, output_size=None):
    refuse_if(dim is None or not is_number(repeats), "repeat_interleave without a number or without an axis")
    return Repeated(x, t.axis(x, dim), int(repeats))


@ROWS.row("permute")
def permute(t, x, *order, dims=None):
    return t.in_order(x, axes_of(t, x, sizes(order) if dims is None else dims))


@ROWS.row("t", "T", "mT")
def turned(t, x, *_):
    return t.in_order(x, (*natural(x.rank - 2), x.rank - 1, x.rank - 2)[-x.rank :])


@ROWS.row("transpose")
def transpose(t, x, dim0, dim1):
    order = list(natural(x.rank))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return t.in_order(x, order)


@ROWS.row("mean", "mean.dim")
def mean(t, x, *dim, axis=None, keepdim=False, dtype=None, **named):
    if dim and isinstance(dim[-1], bool):
        dim, keepdim = dim[:-1], dim[-1]
    dim = sizes(dim) if dim else named.get("dim", axis)
    every = [] if x.sampled else list(natural(x.rank))
    return t.mean(x, axes_of(t, x, dim) if dim not in (None, [], ()) else every, keepdim)


def share(x, y):
    """Returns how many numbers of x each number of y was made of."""
    return math.prod(x.shape) // math.prod(y.shape)


@ROWS.row("sum", "sum.dim_IntList")
def sum_of(t, x, dim=None, axis=None, keepdim=False, dtype=None):
    y = mean(t, x, dim=dim, axis=axis, keepdim=keepdim)
    return t.multiply(y, share(x, y))


@ROWS.row("var", "var.dim", "var.correction", "std", "std.dim", "std.correction")
def variance(t, x, dim=None, unbiased=True, keepdim=False, correction=None, axis=None):
    centred = t.formula(["subtract a b"], x, mean(t, x, dim=dim, axis=axis, keepdim=True))
    y = mean(t, t.formula(["multiply a a"], centred), dim=dim, axis=axis, keepdim=keepdim)
    rest = share(x, y) - (int(unbiased) if correction is None else int(correction))
    return t.formula(["multiply a b", *["sqrt s0"] * t.call.key.startswith("std")], y, share(x, y) / rest)


@ROWS.row("var_mean", "std_mean", "var_mean.correction", "std_mean.correction")
def variance_and_mean(t, x, dim=None, unbiased=True, keepdim=False, correction=None):
    return variance(t, x, dim, unbiased, keepdim, correction), mean(t, x, dim=dim, keepdim=keepdim)


@ROWS.row("norm", "linalg_vector_norm", "vector_norm")
def norm(t, x, p=2, ord=2, dim=None, keepdim=False, dtype=None):
    order = 2 if (p, ord) == ("fro", 2) else p if ord == 2 else ord
    if order == 1:
        return sum_of(t, t.formula(["abs a"], x), dim=dim, keepdim=keepdim)
    if order == math.inf:
        return largest(t, t.formula(["abs a"], x), dim, keepdim)
    refuse_if(order != 2, f"a norm of the order {order}")
    return t.formula(["sqrt a"], sum_of(t, t.formula(["multiply a a"], x), dim=dim, keepdim=keepdim))


@ROWS.row("normalize")
def normalize(t, x, p=2.0, dim=1, eps=1e-12, out=None):
    size = t.formula(["maximum a b"], norm(t, x, p=p, dim=dim, keepdim=True), eps)
    return t.formula(["divide a b"], x, size)


@ROWS.row("pairwise_distance")
def pairwise_distance(t, x1, x2, p=2.0, eps=1e-6, keepdim=False):
    difference = t.formula(["subtract a b", "add s0 c"], x1, x2, float(eps))
    return norm(t, difference, p=p, dim=-1, keepdim=keepdim)


@ROWS.row("cosine_similarity")
def cosine_similarity(t, x1, x2, dim=1, eps=1e-8):
    parts = [normalize(t, x, dim=dim, eps=float(eps)) for x in (x1, t.tensor(x2))]
    return sum_of(t, t.formula(["multiply a b"], *parts), dim=dim)


@ROWS.row("_weight_norm", "_weight_norm_interface")
def weight_norm(t, v, g, dim=0):
    over = [axis for axis in range(v.rank) if dim == -1 or axis != dim % v.rank]
    y = t.formula(["divide b c", "multiply a s0"], v, g, norm(t, v, dim=over, keepdim=True))
    return y if t.call.shape else (y, None)  # ATen's has the norm, too


@ROWS.row("spectral_norm")
def spectral_norm(t, weight, u, v, iterations, eps, training):
    refuse_if(weight.sampled or weight.rank < 2, "spectral_norm of anything but a weight of several axes")
    y = t.emit("spectral_norm", [t.plain(weight)], {"iterations": iterations, "eps": float(eps)})
    t.kept_by_steps(y, {"u": u, "v": v})
    return y


@ROWS.row("amin", "min", "min.dim")
def amin(t, x, dim=None, keepdim=False):
    y = t.formula(["negate a"], largest(t, t.formula(["negate a"], x), dim, keepdim))
    return y if t.call.shape else (y, None)  # min has the places, too


@ROWS.row("amax", "max", "max.dim")
def amax(t, x, dim=None, keepdim=False):
    y = largest(t, x, dim, keepdim)
    return y if t.call.shape else (y, None)  # max has the places, too


def largest(t, x, dim, keepdim):
    refuse_if(dim is None or not x.sampled, "a maximum over the samples")
    over = axes_of(t, x, dim)
    refuse_if(0 in over, "a maximum over the samples")
    kept = [axis for axis in range(x.rank) if axis not in over]
    count = math.prod(x.shape[axis] for axis in over)
    shape = (t.batch, math.prod(x.shape[axis] for axis in kept[1:]), count, 1)
    image = t.reshape(x.permuted((*kept, *over)), shape, helper=True)
    y = image
    while y.shape[2] > 1:  # engines number the pixels of a window in a byte
        windows = [min(y.shape[2], 256), 1]
        y = t.emit("max_pool", [y], {"kernel": windows, "stride": windows, "ceil_mode": True})
    extents = [1 if axis in over else extent for axis, extent in enumerate(x.shape)]
    return t.reshape(y, extents if keepdim else [extents[axis] for axis in kept], helper=True)


# Products of matrices


@ROWS.row("matmul", "bmm", "mm", "mv", raw=True)
def matmul(t, a, *b, **named):
    (b,) = (*b, *named.values())
    own = isinstance(b, Tensor) and b.kind is Kind.parameter and len(b.shape) == 2
    if own and isinstance(a, Value) and a.sampled:
        return t.linear(a, b.shape[1], {"weight": b}, in_first=True)
    a, b = t.tensor(a), t.tensor(b)
    if a.sampled == b.sampled:
        vector = b.rank == 1
        b = t.reshape(b, (*b.shape, 1), helper=True) if vector else b
        y = t.matmul(a, b)
        return t.reshape(y, y.shape[:-1], helper=True) if vector else y
    weight, x = (a, b) if b.sampled else (b, a)
    refuse_if(weight.rank != 2, f"a product with a parameter of {weight.rank} axes")
    if a.sampled:
        return t.linear(x, b.shape[1], {"weight": b.permuted((1, 0))})
    turned = (*natural(x.rank - 2), x.rank - 1, x.rank - 2)
    return t.linear(x.permuted(turned), a.shape[0], {"weight": a}).permuted(turned)


@ROWS.row("baddbmm", "addmm", raw=True)
def addmm(t, input, *factors, beta=1, alpha=1, **named):
    only("a sum of products with a factor", (beta, alpha), (1, 1))
    x, weight = (*factors, *named.values())
    own = all(isinstance(p, Tensor) and p.kind is Kind.parameter for p in (input, weight))
    if own and input.shape == weight.shape[1:] and isinstance(x, Value) and x.sampled:
        return t.linear(x, weight.shape[1], {"weight": weight, "bias": input}, in_first=True)
    return t.formula(["add a b"], input, matmul(t, *factors, *named.values()))


@ROWS.row("scaled_dot_product_attention", raw=True)
def scaled_dot_product_attention(
    t, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    if isinstance(attn_mask, Tensor) and attn_mask.name in t.constants:
        hidden = hides(t.constants[attn_mask.name])
        later = None if hidden is None else hides_later(hidden)
        if later is not None:
            attn_mask, is_causal = None, is_causal or later
    if attn_mask is None:
        return t.attention(query, key, value, bool(is_causal), dropout_p, scale)
    refuse_if(is_causal, "attention that is causal and has another mask, too,")
    turned = (*natural(query.rank - 2), query.rank - 1, query.rank - 2)
    scores = t.matmul(t.formula(["multiply a b"], query, scale), key.permuted(turned))
    scores = t.formula(["add a b"], scores, attn_mask)
    return t.matmul(t.dropout(t.softmax(scores, scores.rank - 1), "dropout", dropout_p), value)


@ROWS.row("attention", raw=True)
def attention(t, query, key, value, causal=False, dropout_p=0.0, scale=None):
    return t.attention(query, key, value, causal, dropout_p, scale)


@ROWS.row("rotary")
def rotary(t, x, theta):
    whole, heads = t.with_heads(x)
    return t.by_heads(t.emit("rotary", [whole], {"heads": heads, "theta": theta}), x)


@ROWS.row("embedding", raw=True)
def embedding(t, weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    refuse_if(scale_grad_by_freq, "embedding with scale_grad_by_freq")
    if isinstance(indices, Tensor) and indices.name in t.constants:
        places = t.constants[indices.name]
        same = places.dim() == 1 or places.dim() == 2 and bool((places == places[:1]).all())
        refuse_if(not same, "an embedding of numbers that are computed")
        return Looked(weight, tuple(places.reshape(-1)[-places.shape[-1] :].tolist()))
    ids = t.plain(t.tensor(indices))
    rows, width = parameter(weight, "a weight")
    options = {"rows": rows, "width": width}
    options |= {} if padding_idx in (None, -1) else {"padding": padding_idx % rows}
    return t.emit("embedding", [ids], options, parts={"weight": weight})


def with_rows(t, x, looked):
    """Returns x plus rows of a weight, which are the same for all samples."""
    places = looked.places[:1] if len(set(looked.places)) == 1 else looked.places
    return t.formula(["add a b"], x, taken(t, t.tensor(looked.weight), 0, places))


@ROWS.row("einsum", raw=True)
def einsum(t, equation, *operands, tensors=(), path=None):
    operands = operands or tensors
    operands = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    given, _, result = equation.replace(" ", "").partition("->")
    given = given.split(",")
    odd = any(len(set(of)) < len(of) for of in (*given, result)) or "." in equation or "->" not in equation
    refuse_if(odd or len(given) != len(operands) or len(given) > 2, f"einsum of '{equation}'")
    terms = [(letters, t.tensor(x)) for letters, x in zip(given, operands)]
    kept = [set(result).union(*(other for other in given if other is not own)) for own in given]
    # What one operand alone has is summed before.
    for i, (letters, x) in enumerate(terms):
        over = [axis for axis, letter in enumerate(letters) if letter not in kept[i]]
        if over:
            x = sum_of(t, x, dim=over)
        terms[i] = "".join(letter for letter in letters if letter in kept[i]), x
    if len(terms) == 1:
        return t.in_order(terms[0][1], [terms[0][0].index(letter) for letter in result])
    (first, a), (second, b) = terms if terms[0][1].sampled >= terms[1][1].sampled else terms[::-1]
    together = [letter for letter in first if letter in second and letter in result]
    inner = [letter for letter in first if letter in second and letter not in result]
    rows, columns = ([l for l in own if l in result and l not in together] for own in (first, second))
    extents = {**dict(zip(first, a.shape)), **dict(zip(second, b.shape))}

    def matrices(letters, x, *groups):
        x = x.permuted([letters.index(letter) for letter in sum(groups, [])])
        shape = [math.prod(extents[letter] for letter in group) for group in groups[1:]]
        return t.reshape(x, (*(extents[letter] for letter in groups[0]), *shape), helper=True)

    if a.sampled and not b.sampled:
        refuse_if(together, f"einsum of '{equation}' with a parameter that has an axis of the result, too,")
        weight = matrices(second, b, [], columns, inner)
        x = matrices(first, a, rows, inner)
        y = t.linear(x, weight.shape[0], {"weight": weight})
    else:
        y = t.matmul(matrices(first, a, together, rows, inner), matrices(second, b, together, inner, columns))
    letters = [*together, *rows, *columns]
    y = t.reshape(y, [extents[letter] for letter in letters], helper=True)
    return t.in_order(y, [letters.index(letter) for letter in result])


@ROWS.row("roll")
def roll(t, x, shifts, dims=None):
    refuse_if(dims is None, "a roll over all axes")
    for shift, axis in zip(*([n] if is_number(n) else n for n in (shifts, dims))):
        axis = t.axis(x, axis)
        begin = -shift % x.shape[axis]
        if begin:
            x = t.concat([t.part(x, axis, begin, x.shape[axis]), t.part(x, axis, 0, begin)], axis)
    return x


@ROWS.row("pixel_shuffle")
def pixel_shuffle(t, x, upscale_factor):
    n, c, h, w = x.shape
    r = int(upscale_factor)
    refuse_if(c % (r * r), f"a pixel_shuffle of {c} channels by {r}")
    x = t.reshape(x, (n, c // r, r, h, w), helper=True).permuted((0, 1, 3, 4, 2))
    x = t.reshape(x, (n, c // (r * r), r, h, w * r), helper=True).permuted((0, 1, 3, 2, 4))
    return t.reshape(x, (n, c // (r * r), h * r, w * r))


@ROWS.row("cat", raw=True)
def cat(t, tensors, dim=0, axis=None):
    parts = [t.tensor(x, "a part of cat") for x in tensors]
    return t.concat(parts, t.axis(parts[0], dim if axis is None else axis))


@ROWS.row("stack", raw=True)
def stack(t, tensors, dim=0):
    parts = [t.tensor(x, "a part of stack") for x in tensors]
    axis = int(dim) % (parts[0].rank + 1)
    refuse_if(axis == 0, "a stack along the samples")
    widened = [t.reshape(x, (*x.shape[:axis], 1, *x.shape[axis:]), helper=True) for x in parts]
    return t.concat(widened, axis)


# Parts


class Slices(tuple):
    """The parts of a split, each a value, an axis, and the places there: a number where the axis is left out,
    or where the part begins and ends. A part that is used adds its slice."""


@ROWS.row("chunk")
def chunk(t, x, chunks, dim=0):
    return split(t, x, -(-x.shape[t.axis(x, dim)] // chunks), dim)


@ROWS.row("split")
def split(t, x, split_size_or_sections=None, dim=0, split_size=None, split_sizes=None):
    axis = t.axis(x, dim)
    extent = x.shape[axis]
    size = next(s for s in (split_size_or_sections, split_size, split_sizes) if s is not None)
    extents = [min(size, extent - begin) for begin in range(0, extent, size)] if is_number(size) else size
    ends = [sum(extents[: i + 1]) for i in range(len(extents))]
    return Slices((x, axis, (end - own, end)) for own, end in zip(extents, ends))


@ROWS.row("unbind")
def unbind(t, x, dim=0):
    axis = t.axis(x, dim)
    return Slices((x, axis, place) for place in range(x.shape[axis]))


@ROWS.row("getitem", raw=True)
def getitem(t, x, index):
    if isinstance(x, Slices):
        of, axis, place = x[index]
        return t.part(of, axis, *place) if isinstance(place, tuple) else t.select(of, axis, place)
    if isinstance(x, tuple):
        return x[index]
    x = t.tensor(x)
    index = list(index) if isinstance(index, tuple) else [index]
    given = sum(i is not None and i is not Ellipsis for i in index)
    if Ellipsis in index:
        at = index.index(Ellipsis)
        index[at : at + 1] = [slice(None)] * (x.rank - given)
    shape, axis = [], 0
    for i in index:
        if i is None:
            shape.append(1)
        elif isinstance(i, slice):
            x = t.part(x, axis, i.start, i.stop, 1 if i.step is None else i.step)
            shape.append(x.shape[axis])
            axis += 1
        else:
            places = i if isinstance(i, list) else t.places_of(i) if isinstance(i, Tensor) else None
            refuse_if(not is_number(i) and places is None, "an index that is no number and no slice")
            if places is None:
                x = t.select(x, axis, i % x.shape[axis])
                continue
            x = taken(t, x, axis, places)
            shape.append(x.shape[axis])
            axis += 1
    return t.reshape(x, (*shape, *x.shape[axis:]))


@ROWS.row("slice")
def slice_of(t, x, dim=0, start=None, end=None, step=1):
    return t.part(x, t.axis(x, dim), start, end, step)


@ROWS.row("narrow")
def narrow(t, x, dim, start, length):
    return slice_of(t, x, dim, start, start + length)


@ROWS.row("select")
def select(t, x, dim, index):
    axis = t.axis(x, dim)
    return t.select(x, axis, index % x.shape[axis])


# Pools and sizes of images


def pool(t, op, x, kernel, stride, pad, ceil_mode, **options):
    options |= {"kernel": pair(kernel), "pad": padding_of(pair(pad) * 2), "ceil_mode": ceil_mode}
    options["stride"] = pair(stride) if stride not in (None, [], ()) else options["kernel"]
    return t.emit(op, [t.image_of(x, op)], options)


def taken(t, x, axis, places):
    """Returns x at these places of an axis, in their order: neighbours at once."""
    places = [int(place) % x.shape[axis] for place in places]
    refuse_if(not places, "an index of no place")
    if places == list(range(places[0], places[0] + len(places))):
        return t.part(x, axis, places[0], places[0] + len(places))
    refuse_if(x.axis(axis) == 0, "an index of the samples")
    return t.same_axes("gather", x, {"axis": x.axis(axis), "table": places})


@ROWS.row("flip")
def flip(t, x, *dims, **named):
    for axis in axes_of(t, x, sizes(dims) if dims else named["dims"]):
        x = taken(t, x, axis, range(x.shape[axis] - 1, -1, -1))
    return x


@ROWS.row("index")
def index(t, x, indices):
    axes = [axis for axis, places in enumerate(indices) if places is not None]
    refuse_if(len(axes) != 1, "an index of several axes by tensors")
    return taken(t, x, axes[0], t.places_of(indices[axes[0]]))


@ROWS.row("index_select")
def index_select(t, x, dim, index):
    return taken(t, x, t.axis(x, dim), t.places_of(index))


@ROWS.row("max_pool2d")
def max_pool2d(t, x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    only("max_pool2d with dilation", pair(dilation), [1, 1])
    return pool(t, "max_pool", x, kernel_size, stride, padding, ceil_mode)


@ROWS.row("avg_pool2d")
def avg_pool2d(
    t, x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    only("avg_pool2d with divisor_override", divisor_override, None)
    counted = {"count_include_pad": count_include_pad}
    return pool(t, "average_pool", x, kernel_size, stride, padding, ceil_mode, **counted)


@ROWS.row("adaptive_avg_pool2d")
def adaptive_avg_pool2d(t, x, output_size):
    return t.adaptive_pool(t.image_of(x, "adaptive_avg_pool2d"), *t.call.shape[2:])


@ROWS.row("adaptive_max_pool2d")
def adaptive_max_pool2d(t, x, output_size, return_indices=False):
    x = t.image_of(x, "adaptive_max_pool2d")
    size = [m or n for n, m in zip(x.shape[2:], both_of(output_size))]
    said = f"adaptive_max_pool2d of {x.shape[2:]} pixels to {size}, which do not divide them,"
    refuse_if(any(n % m for n, m in zip(x.shape[2:], size)), said)
    kernel = [n // m for n, m in zip(x.shape[2:], size)]
    y = t.emit("max_pool", [x], {"kernel": kernel, "stride": kernel})
    return y if t.call.shape else (y, None)  # ATen's has the indices, too


POOLED = {"kernel_size": 1, "stride": 1, "padding": 0, "dilation": 1, "ceil_mode": None}
ROWS.row("max_pool1d")(in_line(max_pool2d, {**POOLED, "return_indices": None}))
POOLED = {"kernel_size": 1, "stride": 1, "padding": 0, "ceil_mode": None, "count_include_pad": None}
ROWS.row("avg_pool1d")(in_line(avg_pool2d, POOLED))


@ROWS.row("adaptive_avg_pool1d")
def adaptive_avg_pool1d(t, x, output_size):
    of_lines = in_line(lambda t, x, size: t.adaptive_pool(x, *size), {"size": 1})
    return of_lines(t, x, output_size)


ROWS.row("adaptive_max_pool1d")(in_line(adaptive_max_pool2d, {"output_size": 1, "return_indices": None}))


@ROWS.row("interpolate")
def interpolate(
    t, x, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None,
    antialias=False,
):
    if x.rank == 3:
        mode = "bilinear" if mode == "linear" else mode
        of_image = lambda t, x, size, scale: interpolate(
            t, x, size, scale, mode, align_corners, recompute_scale_factor, antialias
        )
        return in_line(of_image, {"size": 1, "scale": 1})(t, x, size, scale_factor)
    only("interpolate of mode", mode, "nearest", "bilinear")
    only("interpolate with antialias", antialias, False)
    x = t.image_of(x, "interpolate")
    options = {"mode": mode, "align_corners": bool(align_corners)}
    if scale_factor is None or recompute_scale_factor:
        options["size"] = list((1, *t.call.shape[2:])[-2:])
    else:
        options["scale"] = [float(s) for s in both_of(scale_factor)]
    return t.emit("interpolate", [x], options)


@ROWS.row("upsample_nearest1d")
def upsample_nearest1d(t, x, output_size=None, scale_factors=None, scales=None):
    return interpolate(t, x, output_size, scale_factors if scales is None else scales)


@ROWS.row("upsample_linear1d")
def upsample_linear1d(t, x, output_size=None, align_corners=False, scale_factors=None, scales=None):
    scale = scale_factors if scales is None else scales
    return interpolate(t, x, output_size, scale, "linear", align_corners)


@ROWS.row("upsample_nearest2d")
def upsample_nearest2d(t, x, output_size=None, scale_factors=None, scales_h=None, scales_w=None):
    scales = scale_factors if scales_h is None else [scales_h, scales_w]
    return interpolate(t, x, output_size, scales)


@ROWS.row("upsample_bilinear2d")
def upsample_bilinear2d(
    t, x, output_size=None, align_corners=False, scale_factors=None, scales_h=None, scales_w=None
):
    scales = scale_factors if scales_h is None else [scales_h, scales_w]
    return interpolate(t, x, output_size, scales, "bilinear", align_corners)
