"""The table of ONNX's operators, with one row an operator. A row takes a Translation (importing.py), the
node's inputs, None for those that are left out, and its attributes by their names. What is an attribute in
one opset and an input in another is one argument. docs/bring-your-model.md lists what is supported."""

import functools
import math

import numpy

from antichain.graph_operators import one_or_two, padding, text
from antichain.onnx.messages import Constant
from antichain.onnx.names import ALIKE, COMPARISONS, FUNCTIONS_OF_ONE, FUNCTIONS_OF_TWO, RESIZES
from antichain.onnx.simplify import is_hardsigmoid
from antichain.translation import Padded, Table, Unsupported, Widened, natural, only, refuse_if, same_padding

MOST_OPTION = 1 << 15
ROWS = Table()


def alike(op, options):
    return lambda t, x: t.same_axes(op, x, options)


ROWS.update(
    {
        **{name: alike(*ours) for name, ours in ALIKE.items()},
        "Swish": alike("activate", {"function": "silu"}),
        "Clip": lambda t, x, min=None, max=None: t.clamp(x, t.number(min, "a min"), t.number(max, "a max")),
        "Identity": lambda t, x: x,
        **dict.fromkeys(("Add", "Sum"), lambda t, *inputs: functools.reduce(t.add, inputs)),
        "GlobalAveragePool": lambda t, x: t.emit("global_average_pool", [t.image(x, 1)[0]]),
        "ReduceMean": lambda t, x, axes=None, keepdims=1: t.mean(
            x, [t.axis(x, axis) for axis in t.integers(axes, "axes")], keepdims != 0
        ),
        "InstanceNormalization": lambda t, x, scale, bias, epsilon=1e-5: t.group_norm(
            x, x.shape[1], t.float32(epsilon), t.weight_and_bias(scale, bias, "a scale")
        ),
        "Shape": lambda t, x, start=0, end=None: Constant("", numpy.int64(x.shape[start:end])),
        "Transpose": lambda t, x, perm=None: t.in_order(x, perm or natural(x.rank)[::-1]),
    }
)


@ROWS.row("Gelu")
def gelu(t, x, approximate="none"):
    only("Gelu with the approximation", approximate, "none", "tanh")
    return t.activate(x, "gelu_tanh" if approximate == "tanh" else "gelu")


@ROWS.row("HardSigmoid")
def hardsigmoid(t, x, alpha=0.2, beta=0.5):
    said = f"HardSigmoid with alpha {alpha:g} and beta {beta:g} (1/6 and 0.5 are)"
    refuse_if(not is_hardsigmoid(alpha, beta), said)
    return t.activate(x, "hardsigmoid")


@ROWS.row("Cast")
def cast(t, x, to=1):
    only("Cast of a computed tensor to type", to, 1, 11)
    return x


@ROWS.row("CastLike", raw=True)
def cast_like(t, x, like):
    integers = isinstance(like, Constant) and not like.is_float
    refuse_if(integers, "CastLike a tensor of integers")
    return Constant(x.name, x.array.astype("<f4")) if isinstance(x, Constant) else t.tensor(x)


@ROWS.row("Dropout")
def dropout(t, x, ratio=0.5, training_mode=None):
    p = t.number(ratio, "a ratio")
    return t.dropout(x, "dropout", round(0.5 if p is None else p, 6))


@ROWS.row("Softmax")
def softmax(t, x, axis=None):
    flattens = t.opset < 13  # all axes from that one on
    axis = t.axis(x, (1 if flattens else -1) if axis is None else axis)
    refuse_if(axis < 1 or (flattens and axis != x.rank - 1), f"Softmax over axis {axis}")
    return t.softmax(x, axis)


# Convolutions and pools of images


def some_of(values, what, count=2, least=0):
    """Returns options of a height and a width, or padding at both ends of each."""
    values = [int(i) for i in values]
    refuse_if(len(values) != count, f"{what} of {len(values)} numbers (images have {count})")
    for value in values:
        refuse_if(not 0 <= value <= MOST_OPTION, f"{what} of {value}")
    refuse_if(min(values) < least, f"{what} of {text(values)}")
    return values


def windows_of(x, kernel, strides=(1, 1), dilations=(1, 1), pads=(0,) * 4, auto_pad="NOTSET"):
    """Returns the options that convolutions and pools have of windows, and the four numbers of padding."""
    stride, dilation = some_of(strides, "strides", least=1), some_of(dilations, "dilations", least=1)
    only("auto_pad", auto_pad, "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
    if auto_pad.startswith("SAME"):
        pads = same_padding(x.shape[2:], kernel, stride, dilation, auto_pad == "SAME_LOWER")
    pads = [0] * 4 if auto_pad == "VALID" else some_of(pads, "padding", 4)
    return {"stride": stride, "dilation": dilation}, pads


@ROWS.row("Conv", "ConvTranspose", raw=True)
def conv(t, x, weight, bias=None, kernel_shape=None, group=1, output_padding=(0, 0), **windows):
    op = t.node.op
    x, zeros = t.padded_image(x, op) if op == "Conv" else (t.image_of(x, op), [0] * 4)
    shape, parts = t.weight(weight, "a weight").array.shape, t.weight_and_bias(weight, bias)
    refuse_if(len(shape) != 4, f"{op} with a weight of {len(shape)} axes")
    kernel, said = some_of(shape[2:], "a kernel", least=1), [*(kernel_shape or shape[2:])]
    refuse_if(said != kernel, f"{op} with the kernel_shape {said} and a weight of {kernel}")
    refuse_if(not 1 <= group <= MOST_OPTION, f"groups of {group}")
    if op == "ConvTranspose":
        only("auto_pad", windows.get("auto_pad", "NOTSET"), "NOTSET")
    options, pads = windows_of(x, kernel, **windows)
    pads = [a + b for a, b in zip(zeros, pads)]
    if op == "Conv":
        return t.conv(x, shape, parts, pads, groups=group, **options)
    more = some_of(output_padding, "output_padding")
    return t.conv_transpose(x, shape, parts, pads, group, output_pad=more, **options)


@ROWS.row("AveragePool", "MaxPool", raw=True)
def pool(t, x, kernel_shape=(), ceil_mode=0, count_include_pad=0, storage_order=0, **windows):
    op, average = t.node.op, t.node.op == "AveragePool"
    if "output_size" in windows:  # which simplify.py recognised
        x = t.image_of(x, "an adaptive pool")
        other = [*windows["input_size"]] != [*x.shape[2:]]
        refuse_if(other, "two products with matrices that are of another size than the image")
        return t.adaptive_pool(x, *some_of(windows["output_size"], "a size"))
    x, zeros = t.padded_image(x, op) if average else (t.image_of(x, op), [0] * 4)
    kernel = some_of(kernel_shape, "a kernel", least=1)
    options, own = windows_of(x, kernel, **windows)
    refuse_if(options.pop("dilation") != [1, 1], f"'{op}' with a dilation")
    refuse_if(any(zeros) and any(own), "AveragePool behind a padding that differs at the ends, or of its own")
    pads = zeros if any(zeros) else own
    refuse_if(pads[:2] != pads[2:], f"'{op}' with another padding at the ends")
    options |= {"kernel": kernel, "pad": padding(pads), "ceil_mode": ceil_mode != 0}
    if average:
        options["count_include_pad"] = count_include_pad != 0 or not any(own)
    return t.emit("average_pool" if average else "max_pool", [x], options)


@ROWS.row("Pad")
def pad(t, x, pads, value=None, axes=None, mode="constant"):
    only("Pad of the mode", mode, "constant")
    refuse_if(t.number(value, "a value") not in (None, 0), "Pad by another value than 0")
    refuse_if(axes is not None, "Pad of chosen axes")
    pads = t.integers(pads, "pads")
    if not any(pads):
        return x
    x = t.image_of(x, "Pad")
    refuse_if(len(pads) != 8 or any(pads[i] for i in (0, 1, 4, 5)), "Pad of other than height and width")
    return Padded(x, some_of(pads[2:4] + pads[6:], "padding", 4))


@ROWS.row("Resize")
def resize(
    t, x, roi=None, scales=None, sizes=None, mode="nearest", coordinate_transformation_mode="half_pixel",
    nearest_mode="round_prefer_floor",
):
    x, where = t.image_of(x, "Resize"), coordinate_transformation_mode
    if mode == "linear" and where == "pytorch_half_pixel":
        where = "half_pixel"
    given = {"mode": mode, "coordinate_transformation_mode": where, "nearest_mode": nearest_mode}
    modes = [ours for ours, wanted in RESIZES.items() if wanted.items() <= given.items()]
    refuse_if(not modes, f"Resize of the mode {mode} at {where}")
    options = dict(zip(("mode", "align_corners"), modes[0]))
    if sizes is not None:
        sizes = t.integers(sizes, "sizes")
        refuse_if(len(sizes) != 4, "Resize of other than height and width")
        options["size"] = some_of(sizes[2:], "a size")
    else:
        known = isinstance(scales, Constant) and scales.is_float and scales.array.size == 4
        refuse_if(not known, "Resize without sizes or scales that are constant")
        s = scales.array.ravel().tolist()
        fits = s[:2] == [1, 1] and all(0 < value < MOST_OPTION for value in s[2:])
        refuse_if(not fits, "Resize of other than height and width")
        options["scale"] = one_or_two(s[2:])
    return t.emit("interpolate", [x], options)


# Linear layers


@ROWS.row("Gemm", "MatMul", raw=True)
def linear(t, x, weight, bias=None, alpha=1.0, beta=1.0, transA=0, transB=0):
    """x weightᵀ + bias, over the last axis of x."""
    for name, value, usual in (("alpha", alpha, 1), ("beta", beta, 1), ("transA", transA, 0)):
        only(f"Gemm with {name}", value, usual)
    array = t.weight(weight, "a second factor").array
    refuse_if(array.ndim != 2, f"'{t.node.op}' with a weight of {array.ndim} axes")
    weight = Constant(weight.name, array if transB else array.T)
    return t.linear(t.tensor(x), len(weight.array), t.weight_and_bias(weight, bias))


# Norms


@ROWS.row("BatchNormalization")
def batch_norm(t, x, scale, bias, mean, variance, epsilon=1e-5, momentum=0.9):
    parts = {"weight": t.weight(scale, "a scale"), "bias": t.weight(bias, "a bias")}
    parts |= {"running_mean": t.weight(mean, "a mean"), "running_var": t.weight(variance, "a variance")}
    parts["num_batches_tracked"] = Constant("", numpy.int64(0))
    # What the file calls momentum is the share of the old statistics.
    options = {"eps": t.float32(epsilon), "momentum": t.float32(round(1 - momentum, 6))}
    return t.batch_norm(x, options, parts)


@ROWS.row("LayerNormalization")
def layer_norm(t, x, scale=None, bias=None, axis=-1, axes=None, epsilon=1e-5):
    axes = sorted(t.axis(x, i) for i in (range(t.axis(x, axis), x.rank) if axes is None else axes))
    refuse_if(not axes or axes[0] < 1, "LayerNormalization over the samples")
    neighbours = axes == list(range(axes[0], axes[0] + len(axes)))
    refuse_if(not neighbours, "LayerNormalization over axes that are no neighbours")
    channels = len(axes) == 1 and x.rank == 4 and x.axis(axes[0]) == 1
    others = not channels and axes[-1] != x.rank - 1
    refuse_if(others, "LayerNormalization over other than the last axes")
    over = [] if channels else list(x.shape[axes[0] :])
    return t.layer_norm(x, axes[0], over, t.float32(epsilon), t.weight_and_bias(scale, bias, "a scale"))


@ROWS.row("GroupNormalization")
def group_norm(t, x, scale=None, bias=None, num_groups=0, per_channel=0, epsilon=1e-5):
    parts = t.weight_and_bias(scale, bias, "a scale")
    refuse_if(len(parts) == 1, "GroupNormalization with a scale and no bias")
    for name, part in parts.items():
        times = x.shape[1] // max(part.array.size, 1)
        # Before opset 21 the scale of a group is that of its channels.
        if t.opset < 21 and not per_channel and part.array.size * times == x.shape[1]:
            parts[name] = Constant(part.name, numpy.repeat(part.array.ravel(), times))
    return t.group_norm(x, num_groups, t.float32(epsilon), parts)


# Products


@ROWS.row("Mul", raw=True)
def multiply(t, a, b):
    """A product with a constant of one factor per channel is a layer scale."""
    a, factor = (b, a) if isinstance(a, Constant) else (a, b)
    if not isinstance(factor, Constant):
        return t.multiply(a, factor)
    if factor.is_float and factor.number is not None:
        return t.formula(["multiply a b"], t.tensor(a), factor.number)
    x, shape = t.tensor(a), factor.array.shape
    ahead = x.rank - len(shape)
    along = [ahead + i for i, extent in enumerate(shape) if extent != 1]  # the axes where factors differ
    channels = x.rank == 4 and ahead >= 0 and len(along) == 1 and along[0] > 0 and x.axis(along[0]) == 1
    fits = channels and factor.array.size == x.shape[along[0]] and factor.is_float
    said = f"a product of {t.text(x)} and a constant of {text(shape)} (one factor per channel is)"
    refuse_if(not fits, said)
    return t.same_axes("layer_scale", x, parts={"": factor})


# Formulas, of computed tensors and numbers


def operand(t, x):
    number = x.number if isinstance(x, Constant) and x.is_float else None
    return t.tensor(x) if number is None else number


def formula_of_two(function):
    def of_two(t, a, b):
        return t.formula([f"{function} a b"], operand(t, a), operand(t, b))

    return lambda t, first, *others: functools.reduce(functools.partial(of_two, t), others, first)


for function, name in FUNCTIONS_OF_ONE.items():
    if name not in ROWS:
        ROWS.row(name)(lambda t, x, function=function: t.formula([f"{function} a"], x))
for function, name in {**FUNCTIONS_OF_TWO, **COMPARISONS}.items():
    if name not in ROWS:
        ROWS.row(name, raw=True)(formula_of_two(function))


@ROWS.row("LeakyRelu")
def leaky_relu(t, x, alpha=0.01):
    return t.formula(["leaky_relu a b"], x, t.float32(alpha))


@ROWS.row("Elu")
def elu(t, x, alpha=1.0):
    return t.formula(["elu a b"], x, t.float32(alpha))


@ROWS.row("Where", raw=True)
def where(t, condition, a, b):
    return t.formula(["where a b c"], *(operand(t, x) for x in (condition, a, b)))


# Shapes


@ROWS.row("Reshape")
def reshape(t, x, shape, allowzero=0):
    to = t.integers(shape, "a shape")
    sample = math.prod(x.shape[1:])
    if not allowzero:
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
    return t.reshape(x, (t.batch, *rest))


@ROWS.row("Flatten")
def flatten(t, x, axis=1):
    refuse_if(t.axis(x, axis) != 1, "Flatten at another axis than 1")
    return t.reshape(x, (t.batch, math.prod(x.shape[1:])))


@ROWS.row("Squeeze", "Unsqueeze")
def squeeze(t, x, axes=None):
    axes, narrows = t.integers(axes, "axes"), t.node.op == "Squeeze"
    if narrows:
        axes = axes or [i for i in range(1, x.rank) if x.shape[i] == 1]
    change = numpy.squeeze if narrows else numpy.expand_dims
    shape = change(numpy.broadcast_to(0, x.shape), tuple(axes)).shape  # or numpy says what is wrong
    refuse_if(shape[:1] != (t.batch,), f"{t.node.op} of the samples")
    return t.reshape(x, shape)


@ROWS.row("Expand")
def expand(t, x, shape):
    to = t.integers(shape, "a shape")
    if to[:1] in ([1], [t.file_samples]):
        to[0] = t.batch
    fits = len(to) == x.rank and to[0] == t.batch and all(m == 1 or n in (1, m) for m, n in zip(x.shape, to))
    refuse_if(not fits, "Expand to another number of axes or samples")
    return Widened(x, tuple(max(m, n) for m, n in zip(x.shape, to)))


# Parts


@ROWS.row("Concat")
def concat(t, *inputs, axis=1):
    refuse_if(not inputs, "Concat of nothing")
    parts = [t.tensor(x) for x in inputs]
    return t.concat(parts, t.axis(parts[0], axis))


@ROWS.row("Slice")
def slice_(t, x, starts, ends, axes=None, steps=None):
    begins, ends = t.integers(starts, "starts"), t.integers(ends, "ends")
    axes = t.integers(axes, "axes", range(len(begins)))
    steps = t.integers(steps, "steps", [1] * len(begins))
    alike = len(begins) == len(ends) == len(axes) == len(steps)
    refuse_if(not alike, "Slice with different numbers of starts, ends, axes and steps")
    for begin, end, axis, step in zip(begins, ends, axes, steps):
        x = t.part(x, t.axis(x, axis), begin, end, step)
    return x


@ROWS.row("Split")
def split(t, x, split=None, axis=0):
    axis, count = t.axis(x, axis), len(t.node.outputs)
    extent = x.shape[axis]
    each = math.ceil(extent / count)
    sizes = t.integers(split, "split") or [min(each, extent - i * each) for i in range(count)]
    refuse_if(min(sizes) < 1, "Split into empty parts")
    fits = len(sizes) == count and sum(sizes) == extent
    refuse_if(not fits, f"Split of {extent} into {len(sizes)} parts of {sum(sizes)} together")
    ends = [sum(sizes[: i + 1]) for i in range(count)]
    parts = zip(ends, sizes, t.node.outputs)
    return [t.part(x, axis, end - size, end) if name else None for end, size, name in parts]


@ROWS.row("Gather")
def gather(t, x, place, axis=0):
    axis, extent = t.axis(x, axis), x.shape[axis]
    one = isinstance(place, Constant) and not place.is_float and place.array.size == 1
    refuse_if(not one or place.array.ndim > 1, "Gather of other than one place of an axis")
    inside = axis > 0 and -extent <= place.number < extent
    refuse_if(not inside, "Gather of samples, or beyond the end of an axis")
    at = place.number % extent
    return t.part(x, axis, at, at + 1) if place.array.ndim else t.select(x, axis, at)
