"""The operators of graph.json, as layers/*.h defines them: the options that it leaves out, the shapes of what
they compute, and those of their parameters and buffers. A sample's extents are known, so a file that does not
fit together is refused here, and not by the program.
"""

import math

MOST_AXES = 6
# Which inputs of an operator may be whole numbers.
WHOLE = {"embedding": (0,), "rotary": (1,), "softmax_cross_entropy": (1,)}
PAIRS = ("kernel", "stride", "dilation", "output_pad", "size")  # [height, width]
_CONVOLUTION = {"kernel": 3, "stride": 1, "pad": 0, "dilation": 1, "groups": 1, "bias": True}
_POOL = {"kernel": 2, "stride": 2, "pad": 0, "ceil_mode": False}
DEFAULTS = {
    "attention": {"heads": 1, "kv_heads": 0, "causal": False, "dropout": 0.0},
    "average_pool": {**_POOL, "count_include_pad": True},
    "batch_norm": {"eps": 1e-5, "momentum": 0.1, "fixed_statistics": False, "affine": True},
    "conv2d": {**_CONVOLUTION, "matrix": False, "line": False},
    "conv_transpose2d": {**_CONVOLUTION, "output_pad": 0, "line": False},
    "dropout": {"p": 0.5},
    "elementwise": {"parameter_axis": -1},
    "gather": {"axis": 1},
    "group_norm": {"eps": 1e-5, "affine": True},
    "interpolate": {"mode": "nearest", "align_corners": False},
    "layer_norm": {"over": [], "channels": False, "eps": 1e-5, "affine": True, "bias": True, "centred": True},
    "linear": {"bias": True, "in_first": False},
    "matmul": {"transpose_a": False, "transpose_b": False},
    "max_pool": _POOL,
    "mean": {"keep_dims": False},
    "rotary": {"heads": 1, "theta": 10000.0, "interleaved": False},
    "spectral_norm": {"iterations": 1, "eps": 1e-12},
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


IMAGES = ("adaptive_average_pool", "average_pool", "concat", "conv2d", "conv_transpose2d", "interpolate")
IMAGES += ("batch_norm", "global_average_pool", "layer_scale", "max_pool")


def needed(steps, wanted, gives, takes):
    """Returns those of the steps, in their order, on which depends what is wanted. `gives` and `takes` say by
    what a step is known to those behind it, and what it uses."""
    wanted, kept = set(wanted), []
    for step in reversed(steps):
        if not wanted.isdisjoint(gives(step)):
            kept.append(step)
            wanted.update(takes(step))
    return kept[::-1]


def text(shape, batch=None):
    """Returns "N x 3 x 32 x 32", or "a scalar"; an extent that is `batch` is N."""
    return " x ".join("N" if extent == batch else str(extent) for extent in shape) or "a scalar"


def reach(kernel, dilation):
    """Returns how many pixels lie between the first and the last tap of a kernel, both included."""
    return (kernel - 1) * dilation + 1


def _windows(extent, pad, kernel, stride, ceil):
    slack = extent + sum(pad) - kernel
    count = (slack + (stride - 1 if ceil else 0)) // stride + 1
    return count - 1 if ceil and (count - 1) * stride >= extent + pad[0] else count


def _window(o, x):
    """Returns the height and width of what windows give that slide over the image x."""
    pads, ceil = four(o["pad"]), o.get("ceil_mode", False)
    kernel = [reach(k, d) for k, d in zip(pair(o["kernel"]), pair(o.get("dilation", 1)))]
    sides = [_windows(x[2 + i], pads[i::2], kernel[i], pair(o["stride"])[i], ceil) for i in (0, 1)]
    if any(x[2 + i] + sum(pads[i::2]) < kernel[i] for i in (0, 1)) or min(sides) < 1:
        raise ValueError(f"a {text(kernel)} window does not fit into an image of {text(x[2:])}")
    return sides


def _conv2d(o, x):
    if x[1] % o["groups"] or o["out"] % o["groups"]:
        raise ValueError(f"{x[1]} channels and {o['out']} filters can't be divided into {o['groups']} groups")
    return (x[0], o["out"], *_window(o, x))


def _conv_transpose2d(o, x):
    options = zip(*(pair(o[name]) for name in ("kernel", "stride", "pad", "dilation", "output_pad")))
    y, fits = (x[0], o["out"]), x[1] % o["groups"] == 0
    for extent, (kernel, stride, pad, dilation, more) in zip(x[2:], options):
        y += ((extent - 1) * stride - 2 * pad + reach(kernel, dilation) + more,)
        fits = fits and more < stride
    if not fits or min(y) < 1:
        raise ValueError(f"it does not fit an image of {text(x[1:])}")
    return y


def _pool(o, x):
    if any(2 * pad > kernel for pad, kernel in zip(pair(o["pad"]), pair(o["kernel"]))):
        raise ValueError("it pads by more than half its kernel")
    return (*x[:2], *_window(o, x))


def _interpolate(o, x):
    sides = pair(o["size"]) if "size" in o else [int(e * s) for e, s in zip(x[2:], pair(o["scale"]))]
    if min(sides) < 1:
        raise ValueError(f"it leaves nothing of {text(x[1:])}")
    return (*x[:2], *sides)


def _attention(o, q, *others):
    """Takes q, k and v, or all in one, and perhaps the documents' numbers."""
    key_heads = o["kv_heads"] or o["heads"]
    parts = o["heads"] if len(others) > 1 else o["heads"] + 2 * key_heads
    rows = [q, *others[:2]] if len(others) > 1 else [q]
    if any(len(x) != 3 for x in rows) or o["heads"] % key_heads or q[2] % parts:
        raise ValueError(f"{text(q[1:])} is not divided into {o['heads']} heads and {key_heads} of keys")
    width, keys = q[2] // parts, rows[-1][1]
    if any(tuple(x) != (q[0], keys, key_heads * width) for x in rows[1:]):
        raise ValueError(f"keys and values are not of {key_heads} heads of {width} channels each")
    if others[2 if len(others) > 1 else 0 :] not in ((), ((q[0], keys),)):
        raise ValueError("the documents have not a number for each position")
    return (*q[:2], o["heads"] * width)


def _rotary(o, x, *positions):
    if len(x) != 3 or x[2] % (2 * o["heads"]) or positions not in ((), (tuple(x[:2]),)):
        raise ValueError(f"{text(x[1:])} has no pairs of channels in {o['heads']} heads")
    return x


def _concat(o, *xs):
    if any(x[:1] + x[2:] != xs[0][:1] + xs[0][2:] for x in xs):
        raise ValueError("the parts differ in more than one axis")
    return (xs[0][0], sum(x[1] for x in xs), *xs[0][2:])


def _elementwise(o, *xs):
    if any(len(x) != len(xs[0]) or x[0] != xs[0][0] for x in xs):
        raise ValueError("the operands have different numbers of axes or of samples")
    shapes, rank = [*xs], len(xs[0])
    if "parameter" in o:
        behind = 0 if o["parameter_axis"] < 0 else rank - 1 - o["parameter_axis"]
        aligned = (*o["parameter"], *[1] * behind)
        shapes.append((1,) * (rank - len(aligned)) + aligned)
    extents = [{extent for extent in axis if extent != 1} for axis in zip(*shapes)]
    samples = all(x[0] in (1, xs[0][0]) for x in shapes)
    if not samples or any(len(x) != rank for x in shapes) or any(len(of) > 1 for of in extents):
        raise ValueError(f"{' and '.join(text(x) for x in shapes)} can't be repeated to one shape")
    return tuple(max(of, default=1) for of in extents)


def _matmul(o, a, b):
    first, second = a[-2:], b[-2:]
    rows, inner = first[::-1] if o["transpose_a"] else first
    other, columns = second[::-1] if o["transpose_b"] else second
    if len(a) < 3 or a[:-2] != b[:-2] or inner != other:
        raise ValueError(f"matrices of {text(a)} and {text(b)} have no product")
    return (*a[:-2], rows, columns)


def _mean(o, x):
    kept = 1 if o["keep_dims"] else None
    extents = (kept if i in o["axes"] else extent for i, extent in enumerate(x))
    return tuple(extent for extent in extents if extent is not None)


def _slice(o, x):
    axis, taken = o["axis"], slice(o["begin"], o["end"], o["step"])
    return (*x[:axis], len(range(*taken.indices(x[axis]))), *x[axis + 1 :])


def _gather(o, x):
    axis, table = o["axis"], o["table"]
    if not table or min(table) < 0 or max(table) >= x[axis]:
        raise ValueError(f"axis {axis} of {text(x)} lacks a place that is gathered")
    return (*x[:axis], len(table), *x[axis + 1 :])


def _group_norm(o, x):
    if o["groups"] < 1 or x[1] % o["groups"]:
        raise ValueError(f"{x[1]} channels are no multiple of {o['groups']} groups")
    return x


SHAPES = {
    "adaptive_average_pool": lambda o, x: (*x[:2], o["h"], o["w"]),
    "attention": _attention,
    "average_pool": _pool,
    "class_token": lambda o, x: (x[0], x[1] + 1, x[2]),
    "concat": _concat,
    "constant": lambda o, x: (x[0], *o["shape"]),
    "conv2d": _conv2d,
    "conv_transpose2d": _conv_transpose2d,
    "elementwise": _elementwise,
    "flatten": lambda o, x: (x[0], math.prod(x[1:])),
    "gather": _gather,
    "global_average_pool": lambda o, x: (*x[:2], 1, 1),
    "group_norm": _group_norm,
    "interpolate": _interpolate,
    "embedding": lambda o, x: (*x, o["width"]),
    "linear": lambda o, x: (*x[:-1], o["out"]),
    "matmul": _matmul,
    "max_pool": _pool,
    "mean": _mean,
    "permute": lambda o, x: tuple(x[axis] for axis in o["order"]),
    "reshape": lambda o, x: (x[0], *o["shape"]),
    "rotary": _rotary,
    "slice": _slice,
}


def output_shape(op, o, inputs):
    """Returns the shape of an operator's output. Throws ValueError where it does not fit its inputs."""
    if op == "computed":
        of = o["of"]
        return output_shape(of["op"], {**DEFAULTS.get(of["op"], {}), **of.get("options", {})}, inputs)
    if op in IMAGES and any(len(x) != 4 for x in inputs):
        raise ValueError(f"{op} takes N x C x H x W, not {len(inputs[0])} axes")
    return tuple(SHAPES[op](o, *inputs)) if op in SHAPES else inputs[0]


def row_of(o, x):
    """Returns the shape of what a layer_norm normalises."""
    return (x[1],) if o["channels"] else tuple(o["over"]) or x[-1:]


def _taps(o):
    """Returns the last extents of a convolution's weight."""
    return pair(o["kernel"])[1:] if o["line"] else pair(o["kernel"])


def parts_of(op, o, x):
    """Returns the shapes of the parameters and buffers of an operator with the input x, by their names."""
    channels = x[1:2]
    if op == "conv2d":
        weight = (o["out"], x[1]) if o["matrix"] else (o["out"], x[1] // o["groups"], *_taps(o))
    elif op == "conv_transpose2d":
        weight = (x[1], o["out"] // o["groups"], *_taps(o))
    elif op == "embedding":
        return {"weight": (o["rows"], o["width"])}
    elif op == "linear":
        weight = (x[-1], o["out"]) if o["in_first"] else (o["out"], x[-1])
    elif op == "batch_norm":
        names = ("weight", "bias") * o["affine"] + ("running_mean", "running_var")
        return {**dict.fromkeys(names, channels), "num_batches_tracked": ()}
    elif op == "elementwise":
        return {"": tuple(o["parameter"])} if "parameter" in o else {}
    elif op == "class_token":
        return {"": (1, 1, x[2])}
    elif op == "layer_scale":
        return {"": (x[1], 1, 1)}
    elif op in ("layer_norm", "group_norm") and o["affine"]:
        row = row_of(o, x) if op == "layer_norm" else channels
        return {name: row for name in ("weight", "bias") if o.get("bias", True) or name == "weight"}
    else:
        return {}
    return {"weight": weight, **({"bias": (o["out"],)} if o["bias"] else {})}
