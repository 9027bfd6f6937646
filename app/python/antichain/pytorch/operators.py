"""The table: how each function of PyTorch becomes nodes, one row a function.

A row is a function whose first argument is the Translation; the others have the names and the order that
PyTorch has. It returns the result's Value. What it can't translate it refuses with Unsupported, which names
the option and its value; arguments that a row does not list are refused by the caller.
"""

from antichain.graph_operators import padding as padding_of
from antichain.pytorch.calls import Tensor
from antichain.pytorch.translate import Expanded, Noise, parameter
from antichain.translation import Padded, Unsupported, Value, natural, only, refuse_if

ROWS = {}

# Of layers/: what graph.json knows.
OPERATORS = [
    "activate (gelu, hardsigmoid, hardswish, relu6, sigmoid, silu)",
    *(
        "adaptive_average_pool add average_pool batch_norm concat conv2d conv_transpose2d dropout "
        "flatten global_average_pool group_norm interpolate layer_norm layer_scale linear max_pool "
        "mean multiply permute relu reshape slice softmax stochastic_depth"
    ).split(),
]


def row(*keys):
    def enter(function):
        ROWS.update(dict.fromkeys(keys, function))
        return function

    return enter


def within(what, eps, momentum=0.1):
    refuse_if(not eps > 0, f"{what} eps {eps}")
    refuse_if(not 0 <= momentum <= 1, f"{what} momentum {momentum}")


def tensor(x, what="an input"):
    """Returns x, which must be a computed tensor of which nothing is pending."""
    if isinstance(x, Expanded):
        raise Unsupported(f"{what} that was expanded to {x.shape} for anything but a product")
    if isinstance(x, Padded):
        raise Unsupported("padding by zeros for anything but a convolution")
    if isinstance(x, Noise):
        raise Unsupported("random numbers other than those of dropout and stochastic depth")
    if isinstance(x, Tensor):
        raise Unsupported(f"{what} that is {x}")
    if not isinstance(x, Value):
        raise Unsupported(f"{what} that is no tensor")
    return x


def is_number(x):
    return isinstance(x, (int, float)) and not isinstance(x, bool)


def pair(x, what="a size"):
    values = [int(v) for v in x] if isinstance(x, (tuple, list)) else [int(x)]
    if len(values) == 1:
        values *= 2
    refuse_if(len(values) != 2, f"{what} of {len(values)} numbers (images have a height and a width)")
    return values


def axis_of(x, axis):
    axis = int(axis)
    return axis + len(x.shape) if axis < 0 else axis


def axes_of(x, axes):
    return [axis_of(x, a) for a in (axes if isinstance(axes, (tuple, list)) else [axes])]


def sizes(args):
    """Returns the numbers of x.view(1, 2), which may also be written x.view((1, 2))."""
    return list(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else list(args)


def image(t, x, what):
    x = t.plain(tensor(x))
    refuse_if(x.rank != 4, f"'{what}' of a tensor {x.shape} that is not N x C x H x W")
    return x


def given(**tensors):
    """Returns those that are given."""
    return {own: tensor for own, tensor in tensors.items() if tensor is not None}


# Convolutions and linear layers


@row("conv2d")
def conv2d(t, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    x, zeros = (x.of, x.zeros) if isinstance(x, Padded) else (x, [0] * 4)
    x = image(t, x, "conv2d")
    shape = parameter(weight, "a weight")
    kernel, dilation = list(shape[2:]), pair(dilation)
    if padding == "same":  # PyTorch puts the odd one at the end
        total = [d * (k - 1) for d, k in zip(dilation, kernel)]
        first = [n // 2 for n in total]
        last = [n - f for n, f in zip(total, first)]
    else:
        first = last = [0, 0] if padding == "valid" else pair(padding)
    options = {
        "out": shape[0],
        "kernel": kernel,
        "stride": pair(stride),
        "pad": padding_of([a + b for a, b in zip(zeros, [*first, *last])]),
        "dilation": dilation,
        "groups": groups,
        "bias": bias is not None,
    }
    return t.emit("conv2d", [x], options, parts=given(weight=weight, bias=bias))


@row("conv_transpose2d")
def conv_transpose2d(t, x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    x = image(t, x, "conv_transpose2d")
    shape = parameter(weight, "a weight")
    options = {
        "out": shape[1] * groups,
        "kernel": shape[2:],
        "stride": pair(stride),
        "pad": padding_of(pair(padding) * 2),
        "output_pad": pair(output_padding),
        "dilation": pair(dilation),
        "groups": groups,
        "bias": bias is not None,
    }
    return t.emit("conv_transpose2d", [x], options, parts=given(weight=weight, bias=bias))


@row("linear")
def linear(t, x, weight, bias=None):
    return t.linear(tensor(x), parameter(weight, "a weight")[0], given(weight=weight, bias=bias))


@row("pad", "constant_pad_nd")
def pad(t, x, pad, mode="constant", value=0):
    only("padding of mode", mode, "constant")
    only("padding by", value or 0, 0)
    x = t.plain(tensor(x))
    pad = [int(n) for n in pad]
    if x.rank != 4 or any(pad[4:]) or min(pad) < 0:
        raise Unsupported(f"padding by {pad} of a tensor {x.shape} (images are padded by zeros)")
    left, right, top, bottom = (pad + [0, 0])[:4]
    return Padded(x, [top, left, bottom, right]) if any(pad) else x


# Normalisation


@row("batch_norm")
def batch_norm(
    t,
    x,
    running_mean,
    running_var,
    weight=None,
    bias=None,
    training=False,
    momentum=0.1,
    eps=1e-5,
    cudnn_enabled=None,
):
    refuse_if(weight is None or bias is None, "batch_norm without a weight and a bias (affine=False)")
    refuse_if(running_mean is None, "batch_norm without running statistics")
    refuse_if(momentum is None, "batch_norm with momentum None, a mean over all batches,")
    refuse_if(not training, "batch_norm that is frozen (in evaluation mode)")
    parameter(weight, "a weight")
    x = tensor(x)
    within("batch_norm with", eps, momentum)
    parts = given(weight=weight, bias=bias, running_mean=running_mean, running_var=running_var)
    y = t.batch_norm(x, {"eps": float(eps), "momentum": float(momentum)}, parts)
    count = running_mean.name.rpartition(".")[0] + ".num_batches_tracked"
    t.enter(count.removeprefix("."), "num_batches_tracked")
    t.buffers.append(count.removeprefix("."))
    return y


@row("layer_norm")
def layer_norm(t, x, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=None):
    x = tensor(x)
    within("layer_norm with", eps)
    over, parts = list(normalized_shape), given(weight=weight, bias=bias)
    options = {"eps": float(eps), "affine": weight is not None, "bias": bias is not None or weight is None}
    if len(over) == 1 and x.rank == 4 and x.order == (0, 2, 3, 1):  # torchvision's LayerNorm2d
        return t.same_axes("layer_norm", x, {"channels": True, **options}, parts)
    if len(over) > 1 or x.rank == 2:
        options = {"over": over, **options}
    return t.same_axes("layer_norm", t.plain(x), options, parts)


@row("group_norm")
def group_norm(t, x, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=None):
    refuse_if((weight is None) != (bias is None), "group_norm with a weight and without a bias")
    within("group_norm with", eps)
    options = {"groups": num_groups, "eps": float(eps), "affine": weight is not None}
    return t.same_axes("group_norm", t.plain(tensor(x)), options, given(weight=weight, bias=bias))


# Functions of every number


def activation(function):
    return lambda t, x: t.same_axes("activate", tensor(x), {"function": function})


for name in ("hardsigmoid", "hardswish", "relu6", "sigmoid", "silu"):
    ROWS[name] = activation(name)


@row("relu")
def relu(t, x):
    return t.same_axes("relu", tensor(x))


@row("gelu")
def gelu(t, x, approximate="none"):
    return activation("gelu_tanh" if approximate == "tanh" else "gelu")(t, x)


@row("hardtanh", "clamp", "clip")
def clamp(t, x, min_val=-1, max_val=1, min=None, max=None):
    low, high = (min_val, max_val) if min is None and max is None else (min, max)
    if low == 0 and high is None:
        return relu(t, x)
    refuse_if((low, high) != (0, 6), f"a clamp to {low} … {high} (0 and 6 are ReLU6)")
    return activation("relu6")(t, x)


@row("clamp_min")
def clamp_min(t, x, min):
    return clamp(t, x, min=min)


@row("softmax")
def softmax(t, x, dim, _stacklevel=None, dtype=None, half_to_float=None):
    return t.softmax(tensor(x), axis_of(x, dim))


@row("dropout")
def dropout(t, x, p=0.5, training=True, train=True):
    if p == 0 or not training or not train:
        return tensor(x)
    only("dropout of", float(p) if p >= 1 else 0, 0)
    return t.same_axes("dropout", tensor(x), {"p": float(p)})


@row("stochastic_depth")
def stochastic_depth(t, x, p, mode, training=True):
    if p == 0 or not training:
        return tensor(x)
    only("stochastic depth of", float(p) if p >= 1 else 0, 0)
    return t.same_axes("stochastic_depth", tensor(x), {"p": float(p), "drop": mode})


# Stochastic depth, as it is written by hand: x * x.new_empty(N, 1, 1, 1).bernoulli_(kept).div_(kept)


@row("new_empty", "empty", "empty_like")
def empty(t, *args, **_):
    return Noise(t.call.shape)


@row("bernoulli")
def bernoulli(t, x, p=None, generator=None):
    if not isinstance(x, Noise) or not is_number(p):
        raise Unsupported("random numbers other than those of dropout and stochastic depth")
    return Noise(x.shape, float(p))


def drop_samples(t, x, noise):
    x = tensor(x)
    if noise.kept is None or noise.divided != noise.kept and noise.kept != 1:
        raise Unsupported("stochastic depth that does not divide what it keeps by its probability")
    if noise.kept == 1:
        return x
    modes = {(t.batch,) + (1,) * (x.rank - 1): "row", (1,) * x.rank: "batch"}
    refuse_if(noise.shape not in modes, f"random numbers of the shape {noise.shape} for a tensor {x.shape}")
    return t.same_axes("stochastic_depth", x, {"p": round(1 - noise.kept, 9), "drop": modes[noise.shape]})


# Two tensors


@row("add")
def add(t, a, other, alpha=1):
    b = other
    only("add with alpha", alpha, 1)
    if is_number(a):
        a, b = b, a
    if is_number(b):
        only("the sum of a tensor and the number", b, 0)
        return tensor(a)
    return t.add(tensor(a, "a sum with an operand"), tensor(b, "a sum with an operand"))


@row("mul")
def mul(t, a, other):
    b = other
    if is_number(a) or isinstance(a, (Tensor, Noise)):
        a, b = b, a
    if is_number(b):
        only("the product of a tensor and the number", b, 1)
        return tensor(a)
    if isinstance(b, Noise):
        return drop_samples(t, a, b)
    if isinstance(b, Tensor):
        return layer_scale(t, tensor(a), b)
    a, b = (x.of if isinstance(x, Expanded) else tensor(x) for x in (a, b))
    return t.multiply(a, b)


def layer_scale(t, x, factor):
    shape = parameter(factor, "a factor")
    if not x.plain or x.rank != 4 or shape != (x.shape[1], 1, 1):
        raise Unsupported(
            f"a product of {x.shape} and the parameter {factor.name} of {shape} (it is C x 1 x 1 for "
            "N x C x H x W)"
        )
    return t.same_axes("layer_scale", x, parts={"": factor})


@row("div")
def div(t, a, other):
    b = other
    if isinstance(a, Noise) and is_number(b):
        return Noise(a.shape, a.kept, float(b))
    refuse_if(not is_number(b), "a quotient of tensors")
    only("the quotient of a tensor and the number", b, 1)
    return tensor(a)


@row("expand", "broadcast_to")
def expand(t, x, *_, **__):
    x = tensor(x)
    if t.call.shape == x.shape:
        return x
    if len(t.call.shape) != x.rank:
        raise Unsupported(f"an expansion of {x.shape} to {t.call.shape} (it keeps the number of axes)")
    return Expanded(x, t.call.shape)


@row("expand_as")
def expand_as(t, x, other):
    return expand(t, x)


# Shapes


@row("view", "reshape", "unflatten", "squeeze", "unsqueeze")
def reshape(t, x, *_, **__):
    return t.reshape(tensor(x), t.call.shape)


@row("flatten")
def flatten(t, x, start_dim=0, end_dim=-1):
    return t.reshape(tensor(x), t.call.shape)


@row("view_as", "reshape_as")
def view_as(t, x, other):
    return t.reshape(tensor(x), t.call.shape)


@row("permute")
def permute(t, x, *order, dims=None):
    x = tensor(x)
    return t.in_order(x, axes_of(x, sizes(order) if dims is None else dims))


@row("transpose")
def transpose(t, x, dim0, dim1):
    x = tensor(x)
    order = list(natural(x.rank))
    a, b = axis_of(x, dim0), axis_of(x, dim1)
    order[a], order[b] = order[b], order[a]
    return t.in_order(x, order)


@row("mean", "mean.dim")
def mean(t, x, *dim, axis=None, keepdim=False, dtype=None, **named):
    x = tensor(x)
    if dim and isinstance(dim[-1], bool):
        dim, keepdim = dim[:-1], dim[-1]
    dim = sizes(dim) if dim else named.get("dim", axis)
    return t.mean(x, [] if dim is None else axes_of(x, dim), keepdim)


@row("cat")
def cat(t, tensors, dim=0, axis=None):
    parts = [tensor(x, "a part of cat") for x in tensors]
    axis = axis_of(parts[0], dim if axis is None else axis)
    refuse_if(axis == 0, "cat along the samples")
    return t.concat(parts, axis)


@row("stack")
def stack(t, tensors, dim=0):
    parts = [tensor(x, "a part of stack") for x in tensors]
    axis = int(dim) % (parts[0].rank + 1)
    refuse_if(axis == 0, "a stack along the samples")
    widened = [t.reshape(x, (*x.shape[:axis], 1, *x.shape[axis:]), helper=True) for x in parts]
    return cat(t, widened, axis)


# Parts


class Slices(tuple):
    """The parts of a split: functions that add the slice when it is used."""


def slices(x, axis, extents):
    ends = [sum(extents[: i + 1]) for i in range(len(extents))]
    return Slices((x, axis, end - extent, end) for extent, end in zip(extents, ends))


@row("chunk")
def chunk(t, x, chunks, dim=0):
    x = tensor(x)
    axis = axis_of(x, dim)
    return split(t, x, -(-x.shape[axis] // chunks), axis)


@row("split")
def split(t, x, split_size_or_sections=None, dim=0, split_size=None, split_sizes=None):
    x = tensor(x)
    axis = axis_of(x, dim)
    extent = x.shape[axis]
    size = next(s for s in (split_size_or_sections, split_size, split_sizes) if s is not None)
    if is_number(size):
        size = [min(size, extent - begin) for begin in range(0, extent, size)]
    return slices(x, axis, list(size))


@row("unbind")
def unbind(t, x, dim=0):
    x = tensor(x)
    axis = axis_of(x, dim)
    return Slices((x, axis, i, None) for i in range(x.shape[axis]))


@row("getitem")
def getitem(t, x, index):
    if isinstance(x, Slices):
        of, axis, begin, end = x[index]
        return select(t, of, axis, begin) if end is None else t.part(of, axis, begin, end)
    if isinstance(x, tuple):
        return x[index]
    x = tensor(x)
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
        elif is_number(i):
            i = i % x.shape[axis]
            x = t.part(x, axis, i, i + 1)
            axis += 1
        else:
            raise Unsupported("an index that is no number and no slice")
    return t.reshape(x, (*shape, *x.shape[axis:]))


@row("slice")
def slice_of(t, x, dim=0, start=None, end=None, step=1):
    return t.part(tensor(x), axis_of(x, dim), start, end, step)


@row("narrow")
def narrow(t, x, dim, start, length):
    return t.part(tensor(x), axis_of(x, dim), start, start + length)


@row("select")
def select(t, x, dim, index):
    x = tensor(x)
    axis = axis_of(x, dim)
    index = index % x.shape[axis]
    y = t.part(x, axis, index, index + 1)
    return t.reshape(y, (*y.shape[:axis], *y.shape[axis + 1 :]))


# Pools and sizes of images


def pool(t, op, x, kernel, stride, pad, ceil_mode, **options):
    kernel = pair(kernel)
    stride = pair(stride) if stride not in (None, [], ()) else kernel
    options |= {"kernel": kernel, "stride": stride, "pad": padding_of(pair(pad) * 2), "ceil_mode": ceil_mode}
    return t.emit(op, [image(t, x, op)], options)


@row("max_pool2d")
def max_pool2d(t, x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    only("max_pool2d with dilation", pair(dilation), [1, 1])
    return pool(t, "max_pool", x, kernel_size, stride, padding, ceil_mode)


@row("avg_pool2d")
def avg_pool2d(
    t, x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    only("avg_pool2d with divisor_override", divisor_override, None)
    counted = {"count_include_pad": count_include_pad}
    return pool(t, "average_pool", x, kernel_size, stride, padding, ceil_mode, **counted)


@row("adaptive_avg_pool2d")
def adaptive_avg_pool2d(t, x, output_size):
    x = image(t, x, "adaptive_avg_pool2d")
    h, w = t.call.shape[2:]
    if (h, w) == x.shape[2:]:
        return x
    if (h, w) == (1, 1):
        return t.emit("global_average_pool", [x])
    return t.emit("adaptive_average_pool", [x], {"h": h, "w": w})


@row("adaptive_max_pool2d")
def adaptive_max_pool2d(t, x, output_size, return_indices=False):
    x = image(t, x, "adaptive_max_pool2d")
    size = [
        m or n
        for n, m in zip(
            x.shape[2:], output_size if isinstance(output_size, (tuple, list)) else [output_size] * 2
        )
    ]
    kernel = [n // m for n, m in zip(x.shape[2:], size)]
    if any(n % m for n, m in zip(x.shape[2:], size)):
        raise Unsupported(f"adaptive_max_pool2d of {x.shape[2:]} pixels to {size}, which do not divide them,")
    y = t.emit("max_pool", [x], {"kernel": kernel, "stride": kernel})
    return y if t.call.shape else (y, None)  # ATen's has the indices, too


@row("interpolate")
def interpolate(
    t,
    x,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    only("interpolate of mode", mode, "nearest", "bilinear")
    only("interpolate with antialias", antialias, False)
    x = image(t, x, "interpolate")
    options = {"mode": mode, "align_corners": bool(align_corners)}
    if scale_factor is None or recompute_scale_factor:
        options["size"] = list(t.call.shape[2:])
    else:
        options["scale"] = [
            float(s)
            for s in (scale_factor if isinstance(scale_factor, (tuple, list)) else [scale_factor] * 2)
        ]
    return t.emit("interpolate", [x], options)


@row("upsample_nearest2d")
def upsample_nearest2d(t, x, output_size=None, scale_factors=None, scales_h=None, scales_w=None):
    return interpolate(t, x, output_size, _scales(scale_factors, scales_h, scales_w))


@row("upsample_bilinear2d")
def upsample_bilinear2d(
    t, x, output_size=None, align_corners=False, scale_factors=None, scales_h=None, scales_w=None
):
    return interpolate(
        t, x, output_size, _scales(scale_factors, scales_h, scales_w), "bilinear", align_corners
    )


def _scales(both, h, w):
    return both if both is not None else None if h is None else [h, w]
