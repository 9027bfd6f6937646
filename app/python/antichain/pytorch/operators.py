"""The table: how each function of PyTorch becomes nodes, one row a function.

A row's arguments behind the Translation have the names and the order that PyTorch has. What it can't
translate it refuses with Unsupported, which names the option and its value; arguments that a row does not
list are refused by the table.
"""

import math

from antichain.graph_operators import pair as both_of, padding as padding_of
from antichain.pytorch.calls import Tensor
from antichain.pytorch.translate import Noise, parameter
from antichain.translation import Padded, Table, Unsupported, Value, Widened, natural, only, refuse_if
from antichain.translation import same_padding

ROWS = Table()

# Of layers/: what graph.json knows.
OPERATORS = [
    "activate (gelu, hardsigmoid, hardswish, relu6, sigmoid, silu)",
    *(
        "adaptive_average_pool add average_pool batch_norm concat conv2d conv_transpose2d dropout "
        "elementwise flatten global_average_pool group_norm interpolate layer_norm layer_scale linear "
        "max_pool mean multiply permute relu reshape slice softmax stochastic_depth"
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
    shape, dilation = parameter(weight, "a weight"), pair(dilation)
    if padding == "same":
        pads = same_padding(x.shape[2:], shape[2:], (1, 1), dilation)
    else:
        pads = [0] * 4 if padding == "valid" else pair(padding) * 2
    options = {"stride": pair(stride), "dilation": dilation, "groups": groups}
    pads = [a + b for a, b in zip(zeros, pads)]
    return t.conv(x, shape, given(weight=weight, bias=bias), pads, **options)


@ROWS.row("conv_transpose2d")
def conv_transpose2d(t, x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    x, shape = t.image_of(x, "conv_transpose2d"), parameter(weight, "a weight")
    options = {"stride": pair(stride), "output_pad": pair(output_padding), "dilation": pair(dilation)}
    return t.conv_transpose(x, shape, given(weight=weight, bias=bias), pair(padding) * 2, groups, **options)


@ROWS.row("linear")
def linear(t, x, weight, bias=None):
    return t.linear(x, parameter(weight, "a weight")[0], given(weight=weight, bias=bias))


@ROWS.row("pad", "constant_pad_nd")
def pad(t, x, pad, mode="constant", value=0):
    pad = [int(n) for n in pad]
    ends = [(x.rank - 1 - i // 2, pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]
    if mode != "constant":
        for axis, before, after in ends:
            x = edges(t, x, axis, before, after, mode)
        return x
    only("padding by", value or 0, 0)
    x = t.plain(x)
    if x.rank != 4 or any(pad[4:]) or min(pad) < 0:
        raise Unsupported(f"padding by {pad} of a tensor {x.shape} (images are padded by zeros)")
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
    refuse_if(weight is None or bias is None, "batch_norm without a weight and a bias (affine=False)")
    refuse_if(running_mean is None, "batch_norm without running statistics")
    refuse_if(momentum is None, "batch_norm with momentum None, a mean over all batches,")
    parameter(weight, "a weight")
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


@ROWS.row("layer_norm")
def layer_norm(t, x, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=None):
    over = list(normalized_shape)
    within("layer_norm with", eps)
    shown = over if len(over) > 1 or x.rank == 2 else []
    return t.layer_norm(x, -len(over), shown, float(eps), given(weight=weight, bias=bias))


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
    modes = {(t.batch,) + (1,) * (x.rank - 1): "row", (1,) * x.rank: "batch"}
    refuse_if(noise.shape not in modes, f"random numbers of the shape {noise.shape} for a tensor {x.shape}")
    y = t.dropout(x, "stochastic_depth", round(1 - noise.kept, 9), drop=modes[noise.shape])
    return t.multiply(y, noise.kept / (noise.divided or 1))


# Two tensors


@ROWS.row("add", raw=True)
def add(t, a, other, alpha=1):
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
    scales = isinstance(b, Tensor) and isinstance(a, Value) and a.plain and a.rank == 4
    if scales and parameter(b, "a factor") == (a.shape[1], 1, 1):
        return t.same_axes("layer_scale", a, parts={"": b})
    return t.multiply(a, b)


@ROWS.row("div", raw=True)
def div(t, a, other, rounding_mode=None):
    only("a quotient with rounding_mode", rounding_mode, None)
    if isinstance(a, Noise) and is_number(other):
        return Noise(a.shape, a.kept, float(other))
    return t.tensor(a) if is_number(other) and other == 1 else t.formula(["divide a b"], a, other)


@ROWS.row("expand", "broadcast_to", "expand_as")
def expand(t, x, *_, **__):
    to = t.call.shape
    refuse_if(len(to) != x.rank, f"an expansion of {x.shape} to {to} (it keeps the number of axes)")
    return x if to == x.shape else Widened(x, to)


# Shapes


@ROWS.row("view", "reshape", "unflatten", "squeeze", "unsqueeze", "flatten", "view_as", "reshape_as")
def reshape(t, x, *_, **__):
    return t.reshape(x, t.call.shape)


@ROWS.row("permute")
def permute(t, x, *order, dims=None):
    return t.in_order(x, axes_of(t, x, sizes(order) if dims is None else dims))


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
    return t.mean(x, [] if dim is None else axes_of(t, x, dim), keepdim)


def share(x, y):
    """Returns how many numbers of x each number of y was made of."""
    return math.prod(x.shape) // math.prod(y.shape)


@ROWS.row("sum", "sum.dim_IntList")
def sum_of(t, x, dim=None, axis=None, keepdim=False, dtype=None):
    y = mean(t, x, dim=dim, axis=axis, keepdim=keepdim)
    return t.multiply(y, share(x, y))


@ROWS.row("var", "var.dim", "var.correction", "std", "std.dim", "std.correction")
def variance(t, x, dim=None, unbiased=True, correction=None, keepdim=False, axis=None):
    centred = t.formula(["subtract a b"], x, mean(t, x, dim=dim, axis=axis, keepdim=True))
    y = mean(t, t.formula(["multiply a a"], centred), dim=dim, axis=axis, keepdim=keepdim)
    rest = share(x, y) - (int(unbiased) if correction is None else int(correction))
    return t.formula(["multiply a b", *["sqrt s0"] * t.call.key.startswith("std")], y, share(x, y) / rest)


@ROWS.row("norm", "linalg_vector_norm", "vector_norm")
def norm(t, x, p=2, ord=2, dim=None, keepdim=False, dtype=None):
    refuse_if((p, ord) not in ((2, 2), ("fro", 2)), f"a norm of the order {p if ord == 2 else ord}")
    return t.formula(["sqrt a"], sum_of(t, t.formula(["multiply a a"], x), dim=dim, keepdim=keepdim))


@ROWS.row("amax", "max", "max.dim")
def amax(t, x, dim=None, keepdim=False):
    refuse_if(dim is None, "a maximum over the samples")
    over = axes_of(t, x, dim)
    refuse_if(0 in over, "a maximum over the samples")
    kept = [axis for axis in range(x.rank) if axis not in over]
    count = math.prod(x.shape[axis] for axis in over)
    shape = (t.batch, math.prod(x.shape[axis] for axis in kept[1:]), count, 1)
    image = t.reshape(x.permuted((*kept, *over)), shape, helper=True)
    y = t.emit("max_pool", [image], {"kernel": [count, 1], "stride": [count, 1]})
    extents = [1 if axis in over else extent for axis, extent in enumerate(x.shape)]
    y = t.reshape(y, extents if keepdim else [extents[axis] for axis in kept], helper=True)
    return y if t.call.shape else (y, None)  # max has the places, too


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
            refuse_if(not is_number(i), "an index that is no number and no slice")
            x = t.part(x, axis, i % x.shape[axis], i % x.shape[axis] + 1)
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


@ROWS.row("interpolate")
def interpolate(
    t, x, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None,
    antialias=False,
):
    only("interpolate of mode", mode, "nearest", "bilinear")
    only("interpolate with antialias", antialias, False)
    x = t.image_of(x, "interpolate")
    options = {"mode": mode, "align_corners": bool(align_corners)}
    if scale_factor is None or recompute_scale_factor:
        options["size"] = list(t.call.shape[2:])
    else:
        options["scale"] = [float(s) for s in both_of(scale_factor)]
    return t.emit("interpolate", [x], options)


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
