"""Rows of what moves numbers: other shapes, orders of axes, parts, and tensors that are joined."""

import itertools
import math

import torch

from antichain.graph_operators import pair as both_of, reach
from antichain.pytorch.calls import Kind, Tensor
from antichain.pytorch.operators.table import ROWS, axes_of, is_number, sizes
from antichain.translation import Joined, Looked, Padded, Repeated, Value, Widened, natural, only, refuse_if


@ROWS.row("expand", "broadcast_to", "expand_as")
def expand(t, x, *_, **__):
    to = t.call.shape
    if not x.sampled:
        x = t.reshape(x, (1,) * (len(to) - x.rank) + x.shape, helper=True)
    refuse_if(len(to) != x.rank, f"an expansion of {x.shape} to {to} (it keeps the number of axes)")
    return x if to == x.shape else Widened(x, to)


# Shapes


@ROWS.row(
    "view", "reshape", "unflatten", "squeeze", "unsqueeze", "flatten", "view_as", "reshape_as", raw=True,
    joined=True,
)
def reshape(t, x, *_, **__):
    shape = tuple(t.call.shape)
    if isinstance(x, Looked):
        return x
    if isinstance(x, Widened):
        return repeated(t, x, shape)
    return t.reshape(x if isinstance(x, Joined) else t.tensor(x), shape)


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


@ROWS.row("permute", joined=True)
def permute(t, x, *order, dims=None):
    return t.in_order(x, axes_of(t, x, sizes(order) if dims is None else dims))


@ROWS.row("t", "T", "mT", joined=True)
def turned(t, x, *_):
    return t.in_order(x, (*natural(x.rank - 2), x.rank - 1, x.rank - 2)[-x.rank :])


@ROWS.row("transpose", joined=True)
def transpose(t, x, dim0, dim1):
    order = list(natural(x.rank))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return t.in_order(x, order)


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


@ROWS.row("roll")
def roll(t, x, shifts, dims=None):
    refuse_if(dims is None, "a roll over all axes")
    for shift, axis in zip(*([n] if is_number(n) else n for n in (shifts, dims))):
        axis = t.axis(x, axis)
        begin = -shift % x.shape[axis]
        if begin:
            x = t.concat([t.part(x, axis, begin, x.shape[axis]), t.part(x, axis, 0, begin)], axis)
    return x


@ROWS.row("movedim", "moveaxis", joined=True)
def movedim(t, x, source, destination):
    moved = dict(zip(axes_of(t, x, destination), axes_of(t, x, source)))
    rest = iter(axis for axis in range(x.rank) if axis not in moved.values())
    return t.in_order(x, [moved[axis] if axis in moved else next(rest) for axis in range(x.rank)])


@ROWS.row("pixel_unshuffle", samples=True)
def pixel_unshuffle(t, x, downscale_factor):
    n, c, h, w = x.shape
    r = int(downscale_factor)
    x = t.reshape(x, (n, c, h // r, r, w // r, r), helper=True).permuted((0, 1, 3, 5, 2, 4))
    return t.reshape(x, (n, c * r * r, h // r, w // r))


@ROWS.row("unfold")
def unfold(t, x, dimension=None, size=None, step=None, **of_images):
    """Tensor.unfold: has the windows of an axis, their numbers on an axis behind the others."""
    if of_images:
        refuse_if(dimension is not None, "unfold with some options by position")
        return im2col(t, x, **of_images)
    axis = t.axis(x, dimension)
    starts = range(0, x.shape[axis] - size + 1, step)
    if size == step and len(starts) * size == x.shape[axis]:
        apart = t.reshape(x, (*x.shape[:axis], len(starts), size, *x.shape[axis + 1 :]), helper=True)
        return apart.permuted([a for a in range(apart.rank) if a != axis + 1] + [axis + 1])
    return stack(t, [t.part(x, axis, i, i + (len(starts) - 1) * step + 1, step) for i in range(size)], x.rank)


@ROWS.row("im2col", samples=True)
def im2col(t, x, kernel_size, dilation=1, padding=0, stride=1):
    """Has the pixels under each tap of a kernel one behind the other."""
    kernel, dilation, padding, stride = map(both_of, (kernel_size, dilation, padding, stride))
    x = t.within(x, [(2 + i, padding[i], padding[i]) for i in (0, 1)], 0)
    sides = [(x.shape[2 + i] - reach(kernel[i], dilation[i])) // stride[i] + 1 for i in (0, 1)]
    taps = []
    for tap in itertools.product(*map(range, kernel)):
        y = x
        for i in (0, 1):
            begin = tap[i] * dilation[i]
            y = t.part(y, 2 + i, begin, begin + (sides[i] - 1) * stride[i] + 1, stride[i])
        taps.append(t.reshape(y, (*x.shape[:2], math.prod(sides)), helper=True))
    return t.reshape(stack(t, taps, 2), (x.shape[0], x.shape[1] * len(taps), math.prod(sides)))


@ROWS.row("tril", "triu")
def triangle(t, x, diagonal=0):
    kept = getattr(torch, t.call.key)(torch.ones(x.shape[-2:]), diagonal)
    return t.formula(["where b a 0"], x, t.matrices(kept, x))


@ROWS.row("diff")
def diff(t, x, n=1, dim=-1):
    axis = t.axis(x, dim)
    for _ in range(n):
        x = t.formula(["subtract a b"], t.part(x, axis, 1, None), t.part(x, axis, 0, x.shape[axis] - 1))
    return x


@ROWS.row("pixel_shuffle", samples=True)
def pixel_shuffle(t, x, upscale_factor):
    n, c, h, w = x.shape
    r = int(upscale_factor)
    refuse_if(c % (r * r), f"a pixel_shuffle of {c} channels by {r}")
    x = t.reshape(x, (n, c // r, r, h, w), helper=True).permuted((0, 1, 3, 4, 2))
    x = t.reshape(x, (n, c // (r * r), r, h, w * r), helper=True).permuted((0, 1, 3, 2, 4))
    return t.reshape(x, (n, c // (r * r), h * r, w * r))


@ROWS.row("repeat", "tile", joined=True)
def repeat(t, x, *times, repeats=None, dims=None):
    times = sizes(times) if repeats is None and dims is None else repeats or dims
    times = [1] * (x.rank - len(times)) + [int(n) for n in times]
    if not x.sampled and len(times) > 1 and times[0] == t.batch == t.call.shape[0]:  # once for each sample
        y = x if len(times) == x.rank and x.shape[0] == 1 else t.reshape(x, (1, *x.shape), helper=True)
        y = repeat(t, y, 1, *times[1:])
        return t.tensor(Widened(y, (t.batch, *y.shape[1:])))
    y = x if len(times) == x.rank else t.reshape(x, [1] * (len(times) - x.rank) + [*x.shape], helper=True)
    for axis, count in enumerate(times):
        if count > 1:  # each copy behind the other
            shape = (*y.shape[:axis], count * y.shape[axis], *y.shape[axis + 1 :])
            y = t.reshape(stack(t, [y] * count, axis), shape, helper=True)
    return y


def beside_others(t, tensors):
    """Returns tensors as values, constants among them without samples where the others have none."""
    known = [isinstance(x, Tensor) and x.kind is Kind.constant for x in tensors]
    values = [None if is_known else t.tensor(x) for x, is_known in zip(tensors, known)]
    like = next(x for x in values if x is not None)
    beside = lambda x: t.tensor(x) if like.sampled else t.constant_beside(x, like)
    return [beside(x) if value is None else value for x, value in zip(tensors, values)]


@ROWS.row("cat", raw=True)
def cat(t, tensors, dim=None, axis=None):
    parts = beside_others(t, tensors)
    return t.concat(parts, t.axis(parts[0], (axis or 0) if dim is None else dim))


@ROWS.row("stack", raw=True, joined=True)
def stack(t, tensors, dim=0):
    parts = [x if isinstance(x, Joined) else t.tensor(x, "a part of stack") for x in tensors]
    axis = int(dim) % (parts[0].rank + 1)
    widened = [t.reshape(x, (*x.shape[:axis], 1, *x.shape[axis:]), helper=True) for x in parts]
    return ROWS.make(t, "cat", [widened], {"dim": axis})


# Parts


class Slices(tuple):
    """The parts of a split, each a value, an axis, and the places there: a number where the axis is left out,
    or where the part begins and ends. A part that is used adds its slice."""


@ROWS.row("chunk", joined=True)
def chunk(t, x, chunks, dim=0):
    return split(t, x, -(-x.shape[t.axis(x, dim)] // chunks), dim)


@ROWS.row("split", joined=True)
def split(t, x, split_size_or_sections=None, dim=0, split_size=None, split_sizes=None):
    axis = t.axis(x, dim)
    extent = x.shape[axis]
    size = next(s for s in (split_size_or_sections, split_size, split_sizes) if s is not None)
    extents = [min(size, extent - begin) for begin in range(0, extent, size)] if is_number(size) else size
    ends = [sum(extents[: i + 1]) for i in range(len(extents))]
    return Slices((x, axis, (end - own, end)) for own, end in zip(extents, ends))


@ROWS.row("unbind", joined=True)
def unbind(t, x, dim=0):
    axis = t.axis(x, dim)
    return Slices((x, axis, place) for place in range(x.shape[axis]))


@ROWS.row("getitem", raw=True, joined=True)
def getitem(t, x, index):
    if isinstance(x, Slices):
        of, axis, place = x[index]
        return part(t, of, axis, *place) if isinstance(place, tuple) else selected(t, of, axis, place)
    if isinstance(x, tuple):
        return x[index]
    x = x if isinstance(x, Joined) else t.tensor(x)
    index = list(index) if isinstance(index, tuple) else [index]
    given = sum(i is not None and i is not Ellipsis for i in index)
    if Ellipsis in index:
        at = index.index(Ellipsis)
        index[at : at + 1] = [slice(None)] * (x.rank - given)
    several = sum(isinstance(i, (list, Tensor)) for i in index) > 1
    refuse_if(several, "an index of several axes by tensors")
    shape, axis = [], 0
    for i in index:
        if i is None:
            shape.append(1)
        elif isinstance(i, slice):
            x = part(t, x, axis, i.start, i.stop, 1 if i.step is None else i.step)
            shape.append(x.shape[axis])
            axis += 1
        else:
            places = i if isinstance(i, list) else t.places_of(i) if isinstance(i, Tensor) else None
            refuse_if(not is_number(i) and places is None, "an index that is no number and no slice")
            if places is None:
                x = selected(t, x, axis, i)
                continue
            x = ROWS.make(t, "taken", [x, axis, places], {})
            shape += i.shape if isinstance(i, Tensor) else [len(places)]
            axis += 1
    return t.reshape(x, (*shape, *x.shape[axis:]))


@ROWS.row("slice", joined=True)
def part(t, x, dim=0, start=None, end=None, step=1):
    every = range(x.shape[t.axis(x, dim)])
    return x if every[start:end:step] == every else ROWS.make(t, "range", [x, dim, start, end, step], {})


@ROWS.row("range")
def range_of(t, x, dim, start, end, step):
    return t.part(x, t.axis(x, dim), start, end, step)


def selected(t, x, axis, place):
    return ROWS.make(t, "select", [x, axis, place], {})


@ROWS.row("assigned", samples=True)
def assigned(t, x, part, places):
    """Returns x with a part in the place of ranges of its first axes (antichain.pytorch.normalise)."""
    old = x
    for axis, (begin, end) in enumerate(places):
        old = t.part(old, axis, begin, end)
    if isinstance(part, Tensor) and math.prod(part.shape) == math.prod(old.shape):
        t.constants[name := f"{part.name} at {old.node}"] = t.constants[part.name].reshape(old.shape)
        part = Tensor(name, Kind.constant, old.shape)
    if isinstance(part, Value) and math.prod(part.shape) == math.prod(old.shape):
        part = t.reshape(part, old.shape, helper=True)
    else:
        part = t.formula(["where 0 a b"], old, part)

    def within(x, axis):
        if axis == len(places):
            return part
        begin, end = places[axis]
        if (begin, end) == (0, x.shape[axis]):
            return within(x, axis + 1)
        pieces = [(0, begin), None, (end, x.shape[axis])]
        inner = within(t.part(x, axis, begin, end), axis + 1)
        pieces = [inner if p is None else t.part(x, axis, *p) for p in pieces if p is None or p[0] < p[1]]
        return t.concat(pieces, axis)

    return within(x, 0)


@ROWS.row("copy")
def copy(t, x, src, non_blocking=False):
    return src


@ROWS.row("narrow")
def narrow(t, x, dim, start, length):
    return t.part(x, t.axis(x, dim), start, start + length)


@ROWS.row("select")
def select(t, x, dim, index):
    axis = t.axis(x, dim)
    return t.select(x, axis, index % x.shape[axis])


@ROWS.row("taken")
def taken(t, x, dim, places):
    """Returns x at these places of an axis, in their order: neighbours at once."""
    axis = t.axis(x, dim)
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


@ROWS.row("index", joined=True)
def index(t, x, indices):
    axes = [axis for axis, places in enumerate(indices) if places is not None]
    refuse_if(len(axes) > 1 and not own_axes(indices, axes), "an index of several axes by tensors")
    for axis in axes:
        x = ROWS.make(t, "taken", [x, axis, t.places_of(indices[axis])], {})
    return t.reshape(x, t.call.shape)


def own_axes(indices, axes):
    """Says whether of several indices each gives an axis of the result, in their order."""
    rank = max(len(indices[axis].shape) for axis in axes)
    wide = []
    for axis in axes:
        shape = (1,) * (rank - len(indices[axis].shape)) + tuple(indices[axis].shape)
        wide.append([at for at, extent in enumerate(shape) if extent > 1])
    side_by_side = axes == [*range(axes[0], axes[0] + len(axes))]
    places = sum(wide, [])
    return side_by_side and max(map(len, wide)) == 1 and places == sorted({*places})


@ROWS.row("index_select")
def index_select(t, x, dim, index):
    return taken(t, x, dim, t.places_of(index))
