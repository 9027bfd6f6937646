"""Rows of convolutions, pools, sizes of images, and linear layers."""

import functools
import math

import torch

from antichain.graph_operators import pair as both_of, padding as padding_of, reach
from antichain.pytorch.calls import Kind, Tensor
from antichain.pytorch.operators.table import ROWS, given, pair
from antichain.translation import Joined, Padded, only, refuse_if, same_padding

MOST_PIXELS = 256  # of a max pool's window, which the program numbers in a byte

row = functools.partial(ROWS.row, samples=True)


# Convolutions and linear layers


@ROWS.row("conv2d", raw=True, joined=True)
def conv2d(t, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    joined = isinstance(x, Joined)
    x, zeros = (x, [0] * 4) if joined else t.padded_image(x, "conv2d")
    shape, dilation, parts = t.weight(weight), pair(dilation), given(weight=weight, bias=bias)
    kernel, options = (1, *shape[2:])[-2:], {"stride": pair(stride), "dilation": dilation, "groups": groups}
    if padding == "same":
        pads = same_padding(x.shape[2:], kernel, (1, 1), dilation)
    else:
        pads = [0] * 4 if padding == "valid" else pair(padding) * 2
    pads = [a + b for a, b in zip(zeros, pads)]
    convolved = lambda x, pads: t.conv(x, shape, parts, pads, **options)
    if joined:
        return of_parts(t, x, reach(kernel[0], dilation[0]), pair(stride)[0], pads, convolved)
    return convolved(x, pads)


def of_parts(t, x, kernel, stride, pads, row):
    """Returns what a row computes of images that are parts of samples, such as windows. They are one below
    the other in one image, with zeros between them, and results of several are left out."""
    (top, left, bottom, right), x = pads, t.joined_of_few(x)
    refuse_if(x.at or len(x.lead) > 2 or x.rank != 4, f"'{t.call.key}' of {x},")
    n, parts, channels, height, width = x.of.shape
    rows = height + top + bottom
    y = t.within(x.of, [(3, top, bottom)], 0).permuted((0, 2, 1, 3, 4))
    refuse_if(rows % stride, f"'{t.call.key}' of {rows} rows with the stride {stride} of {x},")
    y = t.reshape(y, (n, channels, parts * rows, width), helper=True)
    y = row(t.plain(y), [0, left, max(0, kernel - stride), right])
    y = t.reshape(y, (n, y.shape[1], parts, rows // stride, y.shape[3]), helper=True)
    y = t.part(y, 3, 0, (rows - kernel) // stride + 1)
    return Joined(y.permuted((0, 2, 1, 3, 4)), x.lead, 0)


@row("conv_transpose2d")
def conv_transpose2d(t, x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    x, shape = t.image_of(x, "conv_transpose2d"), t.weight(weight)
    options = {"stride": pair(stride), "output_pad": pair(output_padding), "dilation": pair(dilation)}
    return t.conv_transpose(x, shape, given(weight=weight, bias=bias), pair(padding) * 2, groups, **options)


@ROWS.row("linear", raw=True)
def linear(t, x, weight, bias=None):
    known = isinstance(x, Tensor) and x.kind is Kind.constant and x.shape[:1] != (t.batch,)
    x = t.constant_beside(x, t.tensor(weight)) if known else t.tensor(x)
    if not x.sampled and x.rank > 1:  # a step of what is computed of parameters
        rows = t.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]), helper=True)
        y = t.matmul(rows, t.tensor(weight).permuted((1, 0)))
        y = y if bias is None else t.formula(["add a b"], y, bias)
        return t.reshape(y, (*x.shape[:-1], y.shape[-1]))
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
row("conv1d", raw=True)(in_line(conv2d, CONVOLVED))
row("conv_transpose1d")(in_line(conv_transpose2d, TRANSPOSED))


@ROWS.row("max_pool2d", joined=True)
def max_pool2d(t, x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    only("max_pool2d with dilation", pair(dilation), [1, 1])
    return pool(t, "max_pool", x, kernel_size, stride, padding, ceil_mode)


@ROWS.row("avg_pool2d", joined=True)
def avg_pool2d(
    t, x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    only("avg_pool2d with divisor_override", divisor_override, None)
    counted = {"count_include_pad": count_include_pad}
    return pool(t, "average_pool", x, kernel_size, stride, padding, ceil_mode, **counted)


@row("adaptive_avg_pool2d")
def adaptive_avg_pool2d(t, x, output_size):
    return t.adaptive_pool(t.image_of(x, "adaptive_avg_pool2d"), *t.call.shape[2:])


@row("adaptive_max_pool2d")
def adaptive_max_pool2d(t, x, output_size, return_indices=False):
    x = t.image_of(x, "adaptive_max_pool2d")
    size = [m or n for n, m in zip(x.shape[2:], both_of(output_size))]
    said = f"adaptive_max_pool2d of {x.shape[2:]} pixels to {size}, which do not divide them,"
    refuse_if(any(n % m for n, m in zip(x.shape[2:], size)), said)
    h, w = (n // m for n, m in zip(x.shape[2:], size))
    if h * w > MOST_PIXELS:  # the first of equal ones is the same by rows and then by columns
        x, w = t.emit("max_pool", [x], {"kernel": [1, w], "stride": [1, w]}, helper=True), 1
    y = t.emit("max_pool", [x], {"kernel": [h, w], "stride": [h, w]})
    return y if t.call.shape else (y, None)  # ATen's has the indices, too


POOLED = {"kernel_size": 1, "stride": 1, "padding": 0, "dilation": 1, "ceil_mode": None}
row("max_pool1d")(in_line(max_pool2d, {**POOLED, "return_indices": None}))
POOLED = {"kernel_size": 1, "stride": 1, "padding": 0, "ceil_mode": None, "count_include_pad": None}
row("avg_pool1d")(in_line(avg_pool2d, POOLED))


@row("adaptive_avg_pool1d")
def adaptive_avg_pool1d(t, x, output_size):
    of_lines = in_line(lambda t, x, size: t.adaptive_pool(x, *size), {"size": 1})
    return of_lines(t, x, output_size)


row("adaptive_max_pool1d")(in_line(adaptive_max_pool2d, {"output_size": 1, "return_indices": None}))


@row("interpolate")
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
    if mode == "bicubic":
        return upsample_bicubic2d(t, x, **t.call.kwargs)
    only("interpolate of mode", mode, "nearest", "bilinear")
    only("interpolate with antialias", antialias, False)
    x = t.image_of(x, "interpolate")
    options = {"mode": mode, "align_corners": bool(align_corners)}
    if scale_factor is None or recompute_scale_factor:
        options["size"] = list((1, *t.call.shape[2:])[-2:])
    else:
        options["scale"] = [float(s) for s in both_of(scale_factor)]
    return t.emit("interpolate", [x], options)


@ROWS.row("upsample_bicubic2d", samples=True)
def upsample_bicubic2d(t, x, **options):
    """A matrix for the height and one for the width. PyTorch computes them of basis vectors, each repeated
    over the other axis, along which all are equal then."""
    refuse_if(x.rank != 4, f"'upsample_bicubic2d' of a tensor {t.text(x)} that is not N x C x H x W")
    h, w = x.shape[2:]
    basis = [torch.eye(extent, dtype=torch.float64) for extent in (h, w)]
    rows = t.call.function(basis[0].view(1, h, h, 1).expand(1, h, h, w), **options)[0, :, :, 0]
    columns = t.call.function(basis[1].view(1, w, 1, w).expand(1, w, h, w), **options)[0, :, 0]
    y = t.matmul(x, t.matrices(columns, x))
    return t.matmul(t.matrices(rows.t(), y), y)


@row("upsample_nearest1d")
def upsample_nearest1d(t, x, output_size=None, scale_factors=None, scales=None):
    return interpolate(t, x, output_size, scale_factors if scales is None else scales)


@row("upsample_linear1d")
def upsample_linear1d(t, x, output_size=None, align_corners=False, scale_factors=None, scales=None):
    scale = scale_factors if scales is None else scales
    return interpolate(t, x, output_size, scale, "linear", align_corners)


@row("upsample_nearest2d")
def upsample_nearest2d(t, x, output_size=None, scale_factors=None, scales_h=None, scales_w=None):
    scales = scale_factors if scales_h is None else [scales_h, scales_w]
    return interpolate(t, x, output_size, scales)


@row("upsample_bilinear2d")
def upsample_bilinear2d(
    t, x, output_size=None, align_corners=False, scale_factors=None, scales_h=None, scales_w=None
):
    scales = scale_factors if scales_h is None else [scales_h, scales_w]
    return interpolate(t, x, output_size, scales, "bilinear", align_corners)


def pool(t, op, x, kernel, stride, pad, ceil_mode, **options):
    options |= {"kernel": pair(kernel), "pad": padding_of(pair(pad) * 2), "ceil_mode": ceil_mode}
    options["stride"] = pair(stride) if stride not in (None, [], ()) else options["kernel"]
    if not isinstance(x, Joined):
        return t.emit(op, [t.image_of(x, op)], options)
    rows, step = options["kernel"][0], options["stride"][0]
    refuse_if(any(pair(pad)) or rows > step, f"'{op}' of {x} with padding or windows that overlap")
    return of_parts(t, x, rows, step, [0] * 4, lambda x, _: t.emit(op, [x], options))
