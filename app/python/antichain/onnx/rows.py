"""The table of ONNX's operators, with one row an operator. A row makes our nodes of an ONNX node by the
methods of a Translation (importing.py), and returns the values of its outputs. docs/bring-your-model.md lists
what is supported. Rows throw Unsupported for options that our operators do not have."""

import math

import numpy

from antichain.onnx.names import ALIKE, RESIZES, WINDOWS, one_or_two, padding
from antichain.onnx.shapes import reach
from antichain.onnx.messages import Constant
from antichain.onnx.simplify import is_hardsigmoid
from antichain.translation import Unsupported, Value, natural

MOST_OPTION = 1 << 15
ROWS = {}


def row(*names):
    def enter(function):
        ROWS.update(dict.fromkeys(names, function))
        return function

    return enter


def only(what, value, supported):
    if value != supported:
        raise Unsupported(f"{what} {value}")


def is_number(constant, value):
    return constant is not None and constant.number == value


for _name, (_op, _options) in ALIKE.items():
    ROWS[_name] = lambda t, node, op=_op, options=_options: (
        t.emit(op, [t.image(t.input(), 1)[0]], options=options)
        if op == "global_average_pool"
        else t.same_shape(op, t.input(), options)
    )


def activate(t, function):
    return t.same_shape("activate", t.input(), {"function": function})


@row("Swish")
def swish(t, node):
    return activate(t, "silu")


@row("Gelu")
def gelu(t, node):
    form = node.get("approximate", "none")
    if form not in ("none", "tanh"):
        raise Unsupported(f"Gelu with the approximation {form}")
    return activate(t, "gelu_tanh" if form == "tanh" else "gelu")


@row("HardSigmoid")
def hardsigmoid(t, node):
    if not is_hardsigmoid(node):
        raise Unsupported(
            f"HardSigmoid with alpha {node.get('alpha', 0.2):g} and beta {node.get('beta', 0.5):g} "
            "(1/6 and 0.5 are)"
        )
    return activate(t, "hardsigmoid")


@row("Clip")
def clip(t, node):
    def bound(name, i):
        if name in node.attributes:
            return node.get(name, 0.0)
        return t.weight(i, name).number if node.has(i) else None

    low, high = bound("min", 1), bound("max", 2)
    if low == 0 and (high is None or high > 3e38):
        return t.same_shape("relu", t.input())
    if low != 0 or high != 6:
        raise Unsupported("Clip to other bounds than 0 and 6 (ReLU6), or 0 alone,")
    return activate(t, "relu6")


@row("Identity")
def identity(t, node):
    return t.input()


@row("Cast")
def cast(t, node):
    if node.get("to", 1) not in (1, 11):
        raise Unsupported(f"Cast of a computed tensor to type {node.get('to', 1)}")
    return t.input()


@row("CastLike")
def cast_like(t, node):
    like, constant = t.constant(1), t.constant(0)
    if like is not None and not like.is_float:
        raise Unsupported("CastLike a tensor of integers")
    return t.input() if constant is None else Constant(constant.name, constant.array.astype("<f4"))


@row("Dropout")
def dropout(t, node):
    p = t.weight(1, "a ratio").number if node.has(1) else node.get("ratio", 0.5)
    p = round(-1 if p is None else p, 6)
    if not 0 <= p < 1:
        raise Unsupported(f"Dropout of {p}")
    return t.same_shape("dropout", t.input(), {"p": p}) if p else t.input()


@row("Softmax")
def softmax(t, node):
    x = t.input()
    axis = t.axis(x, node.get("axis", 1 if t.opset < 13 else -1))
    if axis < 1 or (t.opset < 13 and axis != x.rank - 1):
        raise Unsupported(f"Softmax over axis {axis}")
    if x.rank == 2:
        return t.emit("softmax", [t.plain(x)])
    image, restored = t.image(x, axis)
    return restored(t.emit("softmax", [image]))


# Convolutions and pools of images


def pair_of(values, what, least=0):
    if len(values) != 2:
        raise Unsupported(f"{what} of {len(values)} numbers (images have a height and a width)")
    for value in values:
        if not 0 <= value <= MOST_OPTION:
            raise Unsupported(f"{what} of {value}")
    if min(values) < least:
        raise Unsupported(f"{what} of {values[0]} x {values[1]}")
    return list(values)


def four_of(values):
    if len(values) != 4:
        raise Unsupported(f"padding of {len(values)} numbers (images have 4)")
    return pair_of(values[:2], "padding") + pair_of(values[2:], "padding")


def image_of(t, x, what):
    if x.rank != 4:
        raise Unsupported(f"'{what}' of a tensor of {x.rank} axes that is not N x C x H x W")
    return t.plain(x)


def windows_of(t, node, x, kernel):
    """Returns the options that convolutions and pools have of windows, and the four numbers of padding."""
    stride = pair_of(node.ints(WINDOWS["stride"], (1, 1)), "strides", 1)
    dilation = pair_of(node.ints(WINDOWS["dilation"], (1, 1)), "dilations", 1)
    options = {"kernel": kernel, "stride": stride, "dilation": dilation}
    how = node.get("auto_pad", "NOTSET")
    if how == "NOTSET":
        return options, four_of(node.ints(WINDOWS["pad"], (0,) * 4))
    if how not in ("VALID", "SAME_UPPER", "SAME_LOWER"):
        raise Unsupported(f"auto_pad {how}")
    if how == "VALID":
        return options, [0] * 4
    total = [
        max(0, (math.ceil(extent / s) - 1) * s + reach(k, d) - extent)
        for extent, k, s, d in zip(x.shape[2:], kernel, stride, dilation)
    ]
    less, more = [n // 2 for n in total], [n - n // 2 for n in total]
    return options, less + more if how == "SAME_UPPER" else more + less


def kernels_of(t, node):
    """Returns the constants of a convolution's weight and bias, the kernel and the groups."""
    weight = t.weight(1, "a weight")
    if weight.array.ndim != 4:
        raise Unsupported(f"{node.op} with a weight of {weight.array.ndim} axes")
    kernel = pair_of(list(weight.array.shape[2:]), "a kernel", 1)
    said = node.ints(WINDOWS["kernel"], kernel)
    if said != kernel:
        raise Unsupported(f"{node.op} with the kernel_shape {said} and a weight of {kernel}")
    groups = node.get(WINDOWS["groups"], 1)
    if not 1 <= groups <= MOST_OPTION:
        raise Unsupported(f"groups of {groups}")
    return t.weight_and_bias(weight), kernel, groups


@row("Conv")
def conv(t, node):
    x, zeros = t.padded_input()
    x = image_of(t, x, "Conv")
    parts, kernel, groups = kernels_of(t, node)
    options, pads = windows_of(t, node, x, kernel)
    pads = [a + b for a, b in zip(zeros, pads)]
    options.update(
        out=parts["weight"].array.shape[0], pad=padding(pads), groups=groups, bias="bias" in parts
    )
    return t.emit("conv2d", [x], options=options, parts=parts)


@row("ConvTranspose")
def conv_transpose(t, node):
    x = image_of(t, t.input(), "ConvTranspose")
    parts, kernel, groups = kernels_of(t, node)
    only("auto_pad", node.get("auto_pad", "NOTSET"), "NOTSET")
    if "output_shape" in node.attributes:
        raise Unsupported("output_shape of ConvTranspose")
    options, pads = windows_of(t, node, x, kernel)
    if pads[:2] != pads[2:]:
        raise Unsupported("ConvTranspose with another padding at the ends")
    options.update(
        out=parts["weight"].array.shape[1] * groups,
        pad=padding(pads),
        output_pad=pair_of(node.ints(WINDOWS["output_pad"], (0, 0)), "output_padding"),
        groups=groups,
        bias="bias" in parts,
    )
    return t.emit("conv_transpose2d", [x], options=options, parts=parts)


def pool_options(t, node, x, zeros=(0,) * 4):
    options, pads = windows_of(t, node, x, pair_of(node.ints(WINDOWS["kernel"]), "a kernel", 1))
    if options.pop("dilation") != [1, 1]:
        raise Unsupported(f"'{node.op}' with a dilation")
    own = pads
    if any(zeros):
        if any(own):
            raise Unsupported("AveragePool behind a padding that differs at the ends, or of its own")
        pads = list(zeros)
    if pads[:2] != pads[2:]:
        raise Unsupported(f"'{node.op}' with another padding at the ends")
    return {**options, "pad": padding(pads), "ceil_mode": node.get("ceil_mode", 0) != 0}, own


@row("MaxPool")
def max_pool(t, node):
    x = image_of(t, t.input(), "MaxPool")
    return t.emit("max_pool", [x], options=pool_options(t, node, x)[0])


@row("AveragePool")
def average_pool(t, node):
    if "output_size" in node.attributes:
        x = image_of(t, t.input(), "an adaptive pool")
        if node.ints("input_size") != list(x.shape[2:]):
            raise Unsupported("two products with matrices that are of another size than the image")
        h, w = pair_of(node.ints("output_size"), "a size")
        return t.emit("adaptive_average_pool", [x], options={"h": h, "w": w})
    x, zeros = t.padded_input()
    x = image_of(t, x, "AveragePool")
    options, own = pool_options(t, node, x, zeros)
    include = node.get(WINDOWS["count_include_pad"], 0) != 0 or not any(own)
    return t.emit("average_pool", [x], options={**options, "count_include_pad": include})


@row("ReduceMean")
def reduce_mean(t, node):
    x = t.input()
    axes = [t.axis(x, axis) for axis in t.integers("axes", 1)]
    stored = sorted(x.axis(axis) for axis in axes)
    if not stored or 0 in axes or len(set(stored)) < len(stored):
        raise Unsupported("a mean over the samples")
    if node.get("keepdims", 1) != 0:
        if x.rank == 4 and stored == [2, 3]:
            return t.emit("global_average_pool", [x], order=x.order)
        return t.emit("mean", [x], options={"axes": stored, "keep_dims": True}, order=x.order)
    order = [axis - sum(gone < axis for gone in stored) for axis in x.order if axis not in stored]
    return t.emit("mean", [x], options={"axes": stored}, order=order)


@row("Pad")
def pad(t, node):
    only("Pad of the mode", node.get("mode", "constant"), "constant")
    if node.has(2) and not is_number(t.constant(2), 0):
        raise Unsupported("Pad by another value than 0")
    if node.has(3):
        raise Unsupported("Pad of chosen axes")
    x, pads = t.input(), t.integers("pads", 1)
    if not any(pads):
        return x
    x = image_of(t, x, "Pad")
    if len(pads) != 8 or any(pads[i] for i in (0, 1, 4, 5)):
        raise Unsupported("Pad of other than height and width")
    return t.padded(x, four_of(pads[2:4] + pads[6:]))


@row("Resize")
def resize(t, node):
    x = image_of(t, t.input(), "Resize")
    usual = {
        "mode": "nearest",
        "coordinate_transformation_mode": "half_pixel",
        "nearest_mode": "round_prefer_floor",
    }
    given = {name: node.get(name, value) for name, value in usual.items()}
    if given["mode"] == "linear" and given["coordinate_transformation_mode"] == "pytorch_half_pixel":
        given["coordinate_transformation_mode"] = "half_pixel"
    for (mode, align_corners), wanted in RESIZES.items():
        if all(given[name] == value for name, value in wanted.items()):
            break
    else:
        raise Unsupported(
            f"Resize of the mode {given['mode']} at {given['coordinate_transformation_mode']}"
        )
    options = {"mode": mode, "align_corners": align_corners}
    scales = t.constant(2)
    if node.has(3):
        sizes = t.integers("sizes", 3)
        if len(sizes) != 4:
            raise Unsupported("Resize of other than height and width")
        options["size"] = pair_of(sizes[2:], "a size")
    elif scales is not None and scales.is_float and scales.array.size == 4:
        s = [float(value) for value in scales.array.ravel()]
        if s[:2] != [1, 1] or not all(0 < value < MOST_OPTION for value in s[2:]):
            raise Unsupported("Resize of other than height and width")
        options["scale"] = one_or_two(s[2:])
    else:
        raise Unsupported("Resize without sizes or scales that are constant")
    return t.emit("interpolate", [x], options=options)


# Linear layers


def linear_layer(t, weight):
    """Returns x weightᵀ + bias, over the last axis of x."""
    x, parts = t.input(), t.weight_and_bias(weight)
    options = {"out": weight.array.shape[0], "bias": "bias" in parts}
    if x.rank == 2:
        return t.emit("linear", [t.plain(x)], options=options, parts=parts)
    # Over the last of more axes it is a 1 x 1 convolution over the channels.
    image, restored = t.image(x, x.rank - 1)
    return restored(
        t.emit("conv2d", [image], options={**options, "kernel": 1, "matrix": True}, parts=parts)
    )


def matrix_of(t, node, transposed):
    weight = t.weight(1, "a second factor")
    if weight.array.ndim != 2:
        raise Unsupported(f"'{node.op}' with a weight of {weight.array.ndim} axes")
    return weight if transposed else Constant(weight.name, weight.array.T)


@row("Gemm")
def gemm(t, node):
    only("Gemm with alpha", node.get("alpha", 1.0), 1)
    only("Gemm with beta", node.get("beta", 1.0), 1)
    only("Gemm with transA", node.get("transA", 0), 0)
    return linear_layer(t, matrix_of(t, node, node.get("transB", 0) != 0))


@row("MatMul")
def matmul(t, node):
    return linear_layer(t, matrix_of(t, node, False))


# Norms


@row("BatchNormalization")
def batch_norm(t, node):
    x = t.input()
    names = {"weight": "a scale", "bias": "a bias", "running_mean": "a mean", "running_var": "a variance"}
    parts = {name: t.weight(i, what) for i, (name, what) in enumerate(names.items(), 1)}
    parts["num_batches_tracked"] = Constant("", numpy.int64(0))
    # What the file calls momentum is the share of the old statistics.
    options = {
        "eps": t.real("epsilon", 1e-5),
        "momentum": t.float32(round(1 - node.get("momentum", 0.9), 6)),
    }
    image, restored = t.image(x, 1) if x.rank != 4 else (t.plain(x), lambda y: y)
    return restored(t.emit("batch_norm", [image], options=options, parts=parts))


@row("LayerNormalization")
def layer_norm(t, node):
    x = t.input()
    if "axes" in node.attributes:
        axes = sorted(t.axis(x, axis) for axis in node.ints("axes"))
    else:
        axes = list(range(t.axis(x, node.get("axis", -1)), x.rank))
    if not axes or axes[0] < 1:
        raise Unsupported("LayerNormalization over the samples")
    if axes != list(range(axes[0], axes[0] + len(axes))):
        raise Unsupported("LayerNormalization over axes that are no neighbours")
    parts = t.weight_and_bias(t.weight(1, "a scale")) if node.has(1) else {}
    options = {
        "eps": t.real("epsilon", 1e-5),
        "affine": bool(parts),
        "bias": "bias" in parts or not parts,
    }
    if len(axes) == 1 and x.rank == 4 and x.axis(axes[0]) == 1:
        return t.emit(
            "layer_norm", [x], options={**options, "channels": True}, order=x.order, parts=parts
        )
    if axes[-1] != x.rank - 1:
        raise Unsupported("LayerNormalization over other than the last axes")
    options["over"] = list(x.shape[axes[0] :])
    return t.emit("layer_norm", [t.plain(x)], options=options, parts=parts)


@row("GroupNormalization")
def group_norm(t, node):
    x = t.plain(t.input())
    parts = t.weight_and_bias(t.weight(1, "a scale")) if node.has(1) else {}
    if parts and "bias" not in parts:
        raise Unsupported("GroupNormalization with a scale and no bias")
    groups, channels = node.get("num_groups", 0), x.shape[1]
    if t.opset < 21 and not node.get(
        "per_channel", 0
    ):  # a scale of every group becomes one of every channel
        for name, part in parts.items():
            if part.array.size and channels % part.array.size == 0:
                parts[name] = Constant(
                    part.name, numpy.repeat(part.array.ravel(), channels // part.array.size)
                )
    options = {"groups": groups, "eps": t.real("epsilon", 1e-5), "affine": bool(parts)}
    return t.emit("group_norm", [x], options=options, parts=parts)


@row("InstanceNormalization")
def instance_norm(t, node):
    x = t.plain(t.input())
    parts = {"weight": t.weight(1, "a scale"), "bias": t.weight(2, "a bias")}
    options = {"groups": x.shape[1], "eps": t.real("epsilon", 1e-5), "affine": True}
    return t.emit("group_norm", [x], options=options, parts=parts)


# Arithmetic


@row("Add", "Sum")
def add(t, node):
    for i in (0, 1):
        if is_number(t.constant(i), 0):
            return t.input(1 - i)
    total = t.input(0)
    for i in range(1, len(node.inputs)):
        other = t.input(i)
        if total.shape != other.shape:
            raise Unsupported(
                f"a sum of tensors of the shapes {t.text(total)} and {t.text(other)} (both have one shape)"
            )
        if total.order != other.order:
            total, other = t.plain(total), t.plain(other)
        total = t.emit("add", [total, other], order=total.order)
    return total


def scale_channels(t, x, factor):
    """Returns a product with a constant: one factor per channel is a layer scale."""
    shape = factor.array.shape
    ahead = x.rank - len(shape)
    along = [
        ahead + i for i, extent in enumerate(shape) if extent != 1 and ahead >= 0
    ]  # where factors differ
    if (
        x.rank != 4
        or not along
        or along[-1] == 0
        or x.axis(along[-1]) != 1
        or factor.array.size != x.shape[along[-1]]
        or not factor.is_float
    ):
        raise Unsupported(
            f"a product of {t.text(x)} and a constant of {' x '.join(map(str, shape)) or 'a scalar'} (one "
            "factor per channel is)"
        )
    return t.emit("layer_scale", [x], order=x.order, parts={"": factor})


@row("Mul")
def multiply(t, node):
    for i in (0, 1):
        constant = t.constant(i)
        if constant is not None:
            x = t.input(1 - i)
            return x if is_number(constant, 1) else scale_channels(t, x, constant)
    a, b = t.widened_input(0), t.widened_input(1)
    if math.prod(a.shape) < math.prod(b.shape):
        a, b = b, a
    if a.order != b.order and a.rank == b.rank:
        a, b = t.plain(a), t.plain(b)
    return t.emit("multiply", [a, b], order=a.order)


@row("Div")
def divide(t, node):
    if not is_number(t.constant(1), 1):
        raise Unsupported("a quotient")
    return t.input()


@row("Sub")
def subtract(t, node):
    if not is_number(t.constant(1), 0):
        raise Unsupported("a difference")
    return t.input()


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
            f"a reshape of {samples} samples of {sample} numbers to [{shown}], which mixes samples or "
            f"does not fit,"
        )
    return of_sample(t, x, rest)


@row("Flatten")
def flatten(t, node):
    x = t.input()
    if t.axis(x, node.get("axis", 1)) != 1:
        raise Unsupported("Flatten at another axis than 1")
    return of_sample(t, x, [math.prod(x.shape[1:])])


@row("Squeeze")
def squeeze(t, node):
    x = t.input()
    axes = [t.axis(x, axis) for axis in t.integers("axes", 1)]
    axes = axes or [i for i in range(1, x.rank) if x.shape[i] == 1]
    if 0 in axes:
        raise Unsupported("Squeeze of the samples")
    for axis in axes:
        if x.shape[axis] != 1:
            raise Unsupported(f"Squeeze of an axis of {x.shape[axis]}")
    return of_sample(t, x, [extent for i, extent in enumerate(x.shape) if i > 0 and i not in axes])


@row("Unsqueeze")
def unsqueeze(t, node):
    x, axes = t.input(), t.integers("axes", 1)
    rank = x.rank + len(axes)
    places = {axis % rank for axis in axes if -rank <= axis < rank}
    if len(places) != len(axes) or 0 in places:
        raise Unsupported("Unsqueeze in front of the samples, or of an axis twice")
    extents = iter(x.shape)
    return of_sample(t, x, [1 if i in places else next(extents) for i in range(rank)][1:])


@row("Expand")
def expand(t, node):
    x, to = t.input(), t.integers("shape", 1)
    if to[:1] in ([1], [t.file_samples]):
        to[0] = t.batch
    if (
        len(to) != x.rank
        or to[0] != t.batch
        or any(n not in (1, m) and m != 1 for m, n in zip(x.shape, to))
    ):
        raise Unsupported("Expand to another number of axes or samples")
    return t.widened(x, [max(m, n) for m, n in zip(x.shape, to)])


@row("Transpose")
def transpose(t, node):
    x = t.input()
    perm = node.ints("perm", natural(x.rank)[::-1])
    if sorted(perm) != list(natural(x.rank)):
        raise Unsupported("Transpose with other than a permutation")
    if perm[0] != 0:
        raise Unsupported("a permutation that moves the samples from the first axis")
    return x.permuted(perm)


# Parts


def part(t, x, axis, begin, end, step=1):
    """Returns x[begin:end:step] along an axis."""
    extent = x.shape[axis]
    begin, end, _ = slice(begin, end).indices(extent)
    if (begin, end, step) == (0, extent, 1):
        return x
    if axis == 0:
        raise Unsupported("a part of the samples")
    if step < 1 or begin >= end:
        raise Unsupported(f"an empty part [{begin}:{end}:{step}]")
    options = {"axis": x.axis(axis), "begin": begin, "end": end, "step": step}
    return t.emit("slice", [x], options=options, order=x.order)


@row("Concat")
def concat(t, node):
    parts = [t.input(i) for i in range(len(node.inputs))]
    if not parts:
        raise Unsupported("Concat of nothing")
    if len(parts) == 1:
        return parts[0]
    axis = t.axis(parts[0], node.get("axis", 1))
    if axis == 0:
        raise Unsupported("Concat along the samples")
    if any(x.rank != parts[0].rank for x in parts):
        raise Unsupported("Concat of tensors of different numbers of axes")
    images, restored = t.images(parts, axis)
    return restored(t.emit("concat", images))


@row("Slice")
def slice_(t, node):
    x, begins, ends = t.input(), t.integers("starts", 1), t.integers("ends", 2)
    axes = t.integers("axes", 3, range(len(begins)))
    steps = t.integers("steps", 4, [1] * len(begins))
    if not len(begins) == len(ends) == len(axes) == len(steps):
        raise Unsupported("Slice with different numbers of starts, ends, axes and steps")
    for begin, end, axis, step in zip(begins, ends, axes, steps):
        x = part(t, x, t.axis(x, axis), begin, end, step)
    return x


@row("Split")
def split(t, node):
    x, count = t.input(), len(node.outputs)
    axis = t.axis(x, node.get("axis", 0))
    extent = x.shape[axis]
    each = math.ceil(extent / count)
    sizes = t.integers("split", 1) or [min(each, extent - i * each) for i in range(count)]
    if min(sizes) < 1:
        raise Unsupported("Split into empty parts")
    if len(sizes) != count or sum(sizes) != extent:
        raise Unsupported(f"Split of {extent} into {len(sizes)} parts of {sum(sizes)} together")
    begins = [sum(sizes[:i]) for i in range(count)]
    return [
        part(t, x, axis, begin, begin + size) if name else None
        for begin, size, name in zip(begins, sizes, node.outputs)
    ]


@row("Gather")
def gather(t, node):
    x, place = t.input(), t.constant(1)
    axis = t.axis(x, node.get("axis", 0))
    if place is None or place.is_float or place.array.size != 1 or place.array.ndim > 1:
        raise Unsupported("Gather of other than one place of an axis")
    at, extent = place.number, x.shape[axis]
    if axis == 0 or not -extent <= at < extent:
        raise Unsupported("Gather of samples, or beyond the end of an axis")
    taken = part(t, x, axis, at % extent, at % extent + 1)
    if place.array.ndim:
        return taken
    return of_sample(t, taken, [e for i, e in enumerate(x.shape) if i > 0 and i != axis])
