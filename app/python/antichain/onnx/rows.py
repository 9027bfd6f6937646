"""The table of ONNX's operators, with one row an operator. A row makes our nodes of an ONNX node by the
methods of a Translation (importing.py), and returns the values of its outputs. docs/bring-your-model.md lists
what is supported. Rows throw Unsupported for options that our operators do not have."""

import functools
import math

import numpy

from antichain.graph_operators import one_or_two, padding, reach, text
from antichain.onnx.messages import Constant
from antichain.onnx.names import ALIKE, RESIZES, WINDOWS
from antichain.onnx.simplify import is_hardsigmoid
from antichain.translation import Unsupported, natural, only, refuse_if

MOST_OPTION = 1 << 15
ROWS = {}


def row(*names):
    def enter(function):
        ROWS.update(dict.fromkeys(names, function))
        return function

    return enter


def activate(function):
    return lambda t, node: t.same_axes("activate", t.input(), {"function": function})


@row(*ALIKE)
def alike(t, node):
    op, options = ALIKE[node.op]
    return t.same_axes(op, t.input(), options)


ROWS["Swish"] = activate("silu")
ROWS["Identity"] = lambda t, node: t.input()
ROWS["GlobalAveragePool"] = lambda t, node: t.emit("global_average_pool", [t.image(t.input(), 1)[0]])


@row("Gelu")
def gelu(t, node):
    form = node.get("approximate", "none")
    refuse_if(form not in ("none", "tanh"), f"Gelu with the approximation {form}")
    return activate("gelu_tanh" if form == "tanh" else "gelu")(t, node)


@row("HardSigmoid")
def hardsigmoid(t, node):
    alpha, beta = node.get("alpha", 0.2), node.get("beta", 0.5)
    refuse_if(
        not is_hardsigmoid(node), f"HardSigmoid with alpha {alpha:g} and beta {beta:g} (1/6 and 0.5 are)"
    )
    return activate("hardsigmoid")(t, node)


@row("Clip")
def clip(t, node):
    def bound(name, i):
        if name in node.attributes:
            return node.get(name, 0.0)
        return t.weight(i, name).number if node.has(i) else None

    low, high = bound("min", 1), bound("max", 2)
    if low == 0 and (high is None or high > 3e38):
        return t.same_axes("relu", t.input())
    refuse_if((low, high) != (0, 6), "Clip to other bounds than 0 and 6 (ReLU6), or 0 alone,")
    return activate("relu6")(t, node)


@row("Cast")
def cast(t, node):
    to = node.get("to", 1)
    refuse_if(to not in (1, 11), f"Cast of a computed tensor to type {to}")
    return t.input()


@row("CastLike")
def cast_like(t, node):
    like, constant = t.constant(1), t.constant(0)
    refuse_if(like is not None and not like.is_float, "CastLike a tensor of integers")
    return t.input() if constant is None else Constant(constant.name, constant.array.astype("<f4"))


@row("Dropout")
def dropout(t, node):
    p = t.weight(1, "a ratio").number if node.has(1) else node.get("ratio", 0.5)
    p = round(-1 if p is None else p, 6)
    refuse_if(not 0 <= p < 1, f"Dropout of {p}")
    return t.same_axes("dropout", t.input(), {"p": p}) if p else t.input()


@row("Softmax")
def softmax(t, node):
    x, flattens = t.input(), t.opset < 13  # all axes from that one on
    axis = t.axis(x, node.get("axis", 1 if flattens else -1))
    refuse_if(axis < 1 or (flattens and axis != x.rank - 1), f"Softmax over axis {axis}")
    return t.softmax(x, axis)


# Convolutions and pools of images


def pair_of(values, what, least=0):
    refuse_if(len(values) != 2, f"{what} of {len(values)} numbers (images have a height and a width)")
    for value in values:
        refuse_if(not 0 <= value <= MOST_OPTION, f"{what} of {value}")
    refuse_if(min(values) < least, f"{what} of {values[0]} x {values[1]}")
    return list(values)


def four_of(values):
    refuse_if(len(values) != 4, f"padding of {len(values)} numbers (images have 4)")
    return pair_of(values[:2], "padding") + pair_of(values[2:], "padding")


def image_of(t, x, what):
    refuse_if(x.rank != 4, f"'{what}' of a tensor of {x.rank} axes that is not N x C x H x W")
    return t.plain(x)


def windows_of(t, node, x, kernel):
    """Returns the options that convolutions and pools have of windows, and the four numbers of padding."""
    stride = pair_of(node.ints(WINDOWS["stride"], (1, 1)), "strides", 1)
    dilation = pair_of(node.ints(WINDOWS["dilation"], (1, 1)), "dilations", 1)
    options = {"kernel": kernel, "stride": stride, "dilation": dilation}
    how = node.get("auto_pad", "NOTSET")
    if how == "NOTSET":
        return options, four_of(node.ints(WINDOWS["pad"], (0,) * 4))
    refuse_if(how not in ("VALID", "SAME_UPPER", "SAME_LOWER"), f"auto_pad {how}")
    if how == "VALID":
        return options, [0] * 4
    total = [
        max(0, (math.ceil(extent / s) - 1) * s + reach(k, d) - extent)
        for extent, k, s, d in zip(x.shape[2:], kernel, stride, dilation)
    ]
    less, more = [n // 2 for n in total], [n - n // 2 for n in total]
    return options, less + more if how == "SAME_UPPER" else more + less


@row("Conv", "ConvTranspose")
def conv(t, node):
    transposed = node.op == "ConvTranspose"
    x, zeros = (t.input(), [0] * 4) if transposed else t.padded_input()
    x, weight = image_of(t, x, node.op), t.weight(1, "a weight")
    shape, said = weight.array.shape, node.ints(WINDOWS["kernel"], weight.array.shape[2:])
    refuse_if(len(shape) != 4, f"{node.op} with a weight of {len(shape)} axes")
    kernel, groups = pair_of(shape[2:], "a kernel", 1), node.get(WINDOWS["groups"], 1)
    refuse_if(said != kernel, f"{node.op} with the kernel_shape {said} and a weight of {kernel}")
    refuse_if(not 1 <= groups <= MOST_OPTION, f"groups of {groups}")
    parts = t.weight_and_bias(weight)
    if transposed:
        only("auto_pad", node.get("auto_pad", "NOTSET"), "NOTSET")
        refuse_if("output_shape" in node.attributes, "output_shape of ConvTranspose")
    options, pads = windows_of(t, node, x, kernel)
    pads = [a + b for a, b in zip(zeros, pads)]
    options.update(pad=padding(pads), groups=groups, bias="bias" in parts)
    if not transposed:
        return t.emit("conv2d", [x], {**options, "out": shape[0]}, parts=parts)
    refuse_if(pads[:2] != pads[2:], "ConvTranspose with another padding at the ends")
    more = pair_of(node.ints(WINDOWS["output_pad"], (0, 0)), "output_padding")
    options.update(out=shape[1] * groups, output_pad=more)
    return t.emit("conv_transpose2d", [x], options, parts=parts)


@row("MaxPool", "AveragePool")
def pool(t, node):
    average = node.op == "AveragePool"
    if "output_size" in node.attributes:  # which simplify.py recognised
        x = image_of(t, t.input(), "an adaptive pool")
        other = node.ints("input_size") != list(x.shape[2:])
        refuse_if(other, "two products with matrices that are of another size than the image")
        h, w = pair_of(node.ints("output_size"), "a size")
        return t.emit("adaptive_average_pool", [x], {"h": h, "w": w})
    x, zeros = t.padded_input() if average else (t.input(), [0] * 4)
    x = image_of(t, x, node.op)
    options, own = windows_of(t, node, x, pair_of(node.ints(WINDOWS["kernel"]), "a kernel", 1))
    refuse_if(options.pop("dilation") != [1, 1], f"'{node.op}' with a dilation")
    refuse_if(any(zeros) and any(own), "AveragePool behind a padding that differs at the ends, or of its own")
    pads = zeros if any(zeros) else own
    refuse_if(pads[:2] != pads[2:], f"'{node.op}' with another padding at the ends")
    options.update(pad=padding(pads), ceil_mode=node.get("ceil_mode", 0) != 0)
    if average:
        options["count_include_pad"] = node.get(WINDOWS["count_include_pad"], 0) != 0 or not any(own)
    return t.emit("average_pool" if average else "max_pool", [x], options)


@row("ReduceMean")
def reduce_mean(t, node):
    x = t.input()
    axes = [t.axis(x, axis) for axis in t.integers("axes", 1)]
    return t.mean(x, axes, node.get("keepdims", 1) != 0)


@row("Pad")
def pad(t, node):
    only("Pad of the mode", node.get("mode", "constant"), "constant")
    zeros = not node.has(2) or getattr(t.constant(2), "number", None) == 0
    refuse_if(not zeros, "Pad by another value than 0")
    refuse_if(node.has(3), "Pad of chosen axes")
    x, pads = t.input(), t.integers("pads", 1)
    if not any(pads):
        return x
    x = image_of(t, x, "Pad")
    refuse_if(len(pads) != 8 or any(pads[i] for i in (0, 1, 4, 5)), "Pad of other than height and width")
    return t.padded(x, four_of(pads[2:4] + pads[6:]))


@row("Resize")
def resize(t, node):
    x, where = image_of(t, t.input(), "Resize"), "coordinate_transformation_mode"
    usual = {"mode": "nearest", where: "half_pixel", "nearest_mode": "round_prefer_floor"}
    given = {name: node.get(name, value) for name, value in usual.items()}
    if given["mode"] == "linear" and given[where] == "pytorch_half_pixel":
        given[where] = "half_pixel"
    modes = [ours for ours, wanted in RESIZES.items() if wanted.items() <= given.items()]
    refuse_if(not modes, f"Resize of the mode {given['mode']} at {given[where]}")
    options, scales = dict(zip(("mode", "align_corners"), modes[0])), t.constant(2)
    if node.has(3):
        sizes = t.integers("sizes", 3)
        refuse_if(len(sizes) != 4, "Resize of other than height and width")
        options["size"] = pair_of(sizes[2:], "a size")
    else:
        known = scales is not None and scales.is_float and scales.array.size == 4
        refuse_if(not known, "Resize without sizes or scales that are constant")
        s = scales.array.ravel().tolist()
        fits = s[:2] == [1, 1] and all(0 < value < MOST_OPTION for value in s[2:])
        refuse_if(not fits, "Resize of other than height and width")
        options["scale"] = one_or_two(s[2:])
    return t.emit("interpolate", [x], options)


# Linear layers


@row("Gemm", "MatMul")
def linear(t, node):
    """x weightᵀ + bias, over the last axis of x."""
    for name, usual in {"alpha": 1.0, "beta": 1.0, "transA": 0}.items():
        only(f"Gemm with {name}", node.get(name, usual), usual)
    weight = t.weight(1, "a second factor")
    refuse_if(weight.array.ndim != 2, f"'{node.op}' with a weight of {weight.array.ndim} axes")
    if node.op == "MatMul" or node.get("transB", 0) == 0:
        weight = Constant(weight.name, weight.array.T)
    x, parts = t.input(), t.weight_and_bias(weight)
    return t.linear(x, weight.array.shape[0], parts)


# Norms


@row("BatchNormalization")
def batch_norm(t, node):
    x = t.input()
    names = {"weight": "a scale", "bias": "a bias", "running_mean": "a mean", "running_var": "a variance"}
    parts = {name: t.weight(i, what) for i, (name, what) in enumerate(names.items(), 1)}
    parts["num_batches_tracked"] = Constant("", numpy.int64(0))
    # What the file calls momentum is the share of the old statistics.
    momentum = t.float32(round(1 - node.get("momentum", 0.9), 6))
    return t.batch_norm(x, {"eps": t.epsilon(), "momentum": momentum}, parts)


@row("LayerNormalization")
def layer_norm(t, node):
    x = t.input()
    if "axes" in node.attributes:
        axes = sorted(t.axis(x, axis) for axis in node.ints("axes"))
    else:
        axes = list(range(t.axis(x, node.get("axis", -1)), x.rank))
    refuse_if(not axes or axes[0] < 1, "LayerNormalization over the samples")
    neighbours = axes == list(range(axes[0], axes[0] + len(axes)))
    refuse_if(not neighbours, "LayerNormalization over axes that are no neighbours")
    parts = t.weight_and_bias(t.weight(1, "a scale")) if node.has(1) else {}
    options = {"eps": t.epsilon(), "affine": bool(parts), "bias": "bias" in parts or not parts}
    if len(axes) == 1 and x.rank == 4 and x.axis(axes[0]) == 1:
        options["channels"] = True
        return t.same_axes("layer_norm", x, options, parts)
    refuse_if(axes[-1] != x.rank - 1, "LayerNormalization over other than the last axes")
    options["over"] = list(x.shape[axes[0] :])
    return t.emit("layer_norm", [t.plain(x)], options, parts=parts)


@row("GroupNormalization", "InstanceNormalization")
def group_norm(t, node):
    x = t.plain(t.input())
    channels, groups, parts = x.shape[1], node.get("num_groups", 0), {}
    if node.op == "InstanceNormalization":
        parts, groups = {"weight": t.weight(1, "a scale"), "bias": t.weight(2, "a bias")}, channels
    elif node.has(1):
        parts = t.weight_and_bias(t.weight(1, "a scale"))
        refuse_if("bias" not in parts, "GroupNormalization with a scale and no bias")
        if t.opset < 21 and not node.get("per_channel", 0):  # the scale of a group is that of its channels
            for name, part in parts.items():
                times = channels // part.array.size if part.array.size else 1
                if part.array.size * times == channels:
                    parts[name] = Constant(part.name, numpy.repeat(part.array.ravel(), times))
    options = {"groups": groups, "eps": t.epsilon(), "affine": bool(parts)}
    return t.emit("group_norm", [x], options, parts=parts)


# Arithmetic


@row("Add", "Sum")
def add(t, node):
    return functools.reduce(t.add, [t.input(i) for i in range(len(node.inputs))])


def scale_channels(t, x, factor):
    """Returns a product with a constant: one factor per channel is a layer scale."""
    shape = factor.array.shape
    ahead = x.rank - len(shape)
    along = [ahead + i for i, extent in enumerate(shape) if extent != 1]  # the axes where factors differ
    channels = x.rank == 4 and ahead >= 0 and len(along) == 1 and along[0] > 0 and x.axis(along[0]) == 1
    if not channels or factor.array.size != x.shape[along[0]] or not factor.is_float:
        raise Unsupported(
            f"a product of {t.text(x)} and a constant of {text(shape)} (one factor per channel is)"
        )
    return t.same_axes("layer_scale", x, parts={"": factor})


@row("Mul")
def multiply(t, node):
    for i in (0, 1):
        if t.constant(i) is not None:
            return scale_channels(t, t.input(1 - i), t.constant(i))
    a, b = t.widened_input(0), t.widened_input(1)
    return t.multiply(a, b)


@row("Div", "Sub")
def divide(t, node):
    raise Unsupported("a quotient" if node.op == "Div" else "a difference")


# Shapes


@row("Shape")
def shape(t, node):
    return Constant("", numpy.int64(t.input().shape[node.get("start", 0) : node.attributes.get("end")]))


def of_sample(t, x, shape):
    return t.reshape(x, (t.batch, *shape))


@row("Reshape")
def reshape(t, node):
    x, to = t.input(), t.integers("shape", 1)
    sample = math.prod(x.shape[1:])
    if node.get("allowzero", 0) == 0:
        to = [x.shape[i] if extent == 0 and i < x.rank else extent for i, extent in enumerate(to)]
    rest = to[1:]
    fixed = math.prod(extent for extent in rest if extent != -1)
    if rest.count(-1) == 1 and fixed > 0:
        rest[rest.index(-1)] = sample // fixed
    firsts = (t.batch, t.file_samples) if -1 in to[1:] else (-1, t.batch, t.file_samples)
    if not 2 <= len(to) <= 8 or to[0] not in firsts or min(rest) < 1 or math.prod(rest) != sample:
        samples = "any number of" if t.file_samples is None else t.file_samples
        shown = ", ".join("N" if extent == t.batch else str(extent) for extent in to)
        raise Unsupported(
            f"a reshape of {samples} samples of {sample} numbers to [{shown}], which mixes samples or does "
            "not fit,"
        )
    return of_sample(t, x, rest)


@row("Flatten")
def flatten(t, node):
    x = t.input()
    refuse_if(t.axis(x, node.get("axis", 1)) != 1, "Flatten at another axis than 1")
    return of_sample(t, x, [math.prod(x.shape[1:])])


@row("Squeeze", "Unsqueeze")
def squeeze(t, node):
    x, axes = t.input(), t.integers("axes", 1)
    if node.op == "Squeeze":
        axes = axes or [i for i in range(1, x.rank) if x.shape[i] == 1]
    change = numpy.squeeze if node.op == "Squeeze" else numpy.expand_dims
    shape = change(numpy.broadcast_to(0, x.shape), tuple(axes)).shape  # or numpy says what is wrong
    refuse_if(shape[:1] != (t.batch,), f"{node.op} of the samples")
    return t.reshape(x, shape)


@row("Expand")
def expand(t, node):
    x, to = t.input(), t.integers("shape", 1)
    if to[:1] in ([1], [t.file_samples]):
        to[0] = t.batch
    fits = len(to) == x.rank and to[0] == t.batch and all(m == 1 or n in (1, m) for m, n in zip(x.shape, to))
    refuse_if(not fits, "Expand to another number of axes or samples")
    return t.widened(x, [max(m, n) for m, n in zip(x.shape, to)])


@row("Transpose")
def transpose(t, node):
    x = t.input()
    perm = node.ints("perm", natural(x.rank)[::-1])
    refuse_if(sorted(perm) != list(natural(x.rank)), "Transpose with other than a permutation")
    return t.in_order(x, perm)


# Parts


@row("Concat")
def concat(t, node):
    parts = [t.input(i) for i in range(len(node.inputs))]
    refuse_if(not parts, "Concat of nothing")
    axis, ranks = t.axis(parts[0], node.get("axis", 1)), {x.rank for x in parts}
    refuse_if(axis == 0, "Concat along the samples")
    refuse_if(len(ranks) > 1, "Concat of tensors of different numbers of axes")
    return t.concat(parts, axis)


@row("Slice")
def slice_(t, node):
    x, begins, ends = t.input(), t.integers("starts", 1), t.integers("ends", 2)
    axes = t.integers("axes", 3, range(len(begins)))
    steps = t.integers("steps", 4, [1] * len(begins))
    alike = len(begins) == len(ends) == len(axes) == len(steps)
    refuse_if(not alike, "Slice with different numbers of starts, ends, axes and steps")
    for begin, end, axis, step in zip(begins, ends, axes, steps):
        x = t.part(x, t.axis(x, axis), begin, end, step)
    return x


@row("Split")
def split(t, node):
    x, count = t.input(), len(node.outputs)
    axis = t.axis(x, node.get("axis", 0))
    extent = x.shape[axis]
    each = math.ceil(extent / count)
    sizes = t.integers("split", 1) or [min(each, extent - i * each) for i in range(count)]
    refuse_if(min(sizes) < 1, "Split into empty parts")
    fits = len(sizes) == count and sum(sizes) == extent
    refuse_if(not fits, f"Split of {extent} into {len(sizes)} parts of {sum(sizes)} together")
    begins = [sum(sizes[:i]) for i in range(count)]
    return [
        t.part(x, axis, begin, begin + size) if name else None
        for begin, size, name in zip(begins, sizes, node.outputs)
    ]


@row("Gather")
def gather(t, node):
    x, place = t.input(), t.constant(1)
    axis = t.axis(x, node.get("axis", 0))
    one = place is not None and not place.is_float and place.array.size == 1 and place.array.ndim <= 1
    refuse_if(not one, "Gather of other than one place of an axis")
    at, extent = place.number, x.shape[axis]
    inside = axis > 0 and -extent <= at < extent
    refuse_if(not inside, "Gather of samples, or beyond the end of an axis")
    taken = t.part(x, axis, at % extent, at % extent + 1)
    if place.array.ndim:
        return taken
    return of_sample(t, taken, [e for i, e in enumerate(x.shape) if i > 0 and i != axis])
