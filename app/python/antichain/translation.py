"""Makes nodes of graph.json from what another framework calls its operators. The table of those operators is
elsewhere (pytorch/operators.py, onnx/rows.py); here is what its rows have at hand.

A Value is a tensor as the user's code sees it: a node's output, and the order in which its axes are read. So
a permutation costs nothing until an operator needs the axes in their order: a LayerNorm or a Linear over the
last axis of N x H x W x C works on the N x C x H x W that is stored.
"""

import collections
import dataclasses
import math

from antichain.graph_operators import DEFAULTS, PAIRS, one_or_two, output_shape, pair, parts_of


class Unsupported(Exception):
    """What a row of the table can't translate: "max_pool2d with dilation 2". The caller says where it is."""


def refuse_if(condition, what):
    if condition:
        raise Unsupported(what)


def only(what, value, *supported):
    refuse_if(value not in supported, f"{what} {value}")


@dataclasses.dataclass(frozen=True)
class Value:
    node: str
    stored: tuple  # the shape of the node's output
    order: tuple  # axis i is the output's axis order[i]

    @property
    def shape(self):
        return tuple(self.stored[axis] for axis in self.order)

    @property
    def rank(self):
        return len(self.stored)

    @property
    def plain(self):
        return self.order == tuple(range(self.rank))

    def axis(self, axis):
        """Returns which axis of the node's output an axis is."""
        return self.order[axis]

    def permuted(self, order):
        return dataclasses.replace(self, order=tuple(self.order[axis] for axis in order))


@dataclasses.dataclass(frozen=True)
class Padded:
    """An image with zeros around it, for the operator that follows."""

    of: Value
    zeros: list  # rows above, columns left, rows below, columns right


class Names:
    """Gives out names, each once: "relu", "relu_1", "relu_2"."""

    def __init__(self, taken=(), separator="_"):
        self.taken, self.counts, self.separator = set(taken), collections.Counter(), separator

    def unique(self, name):
        wanted = name
        while name in self.taken:
            self.counts[wanted] += 1
            name = f"{wanted}{self.separator}{self.counts[wanted]}"
        self.taken.add(name)
        return name


def natural(rank):
    return tuple(range(rank))


class Shaping:
    """Brings values into the order and the shape that an operator needs. A class that has it adds the nodes:
    new_node(op, inputs, options, helper, parts, shapes) adds one and returns its name."""

    def __init__(self, batch):
        self.batch = batch
        self.plain_forms = {}

    @staticmethod
    def text(x):
        """Returns the shape of x as a refusal has it."""
        return str(x.shape)

    def emit(self, op, inputs, options=None, order=None, helper=False, parts=None):
        """Adds a node with the options that are not the usual ones, and returns its value, its axes read in
        `order`. `parts` are its parameters and buffers, by the names that the operator gives them."""
        usual = DEFAULTS.get(op, {})
        options = {n: one_or_two(pair(v)) if n in PAIRS else v for n, v in (options or {}).items()}
        stored, whole = [x.stored for x in inputs], {**usual, **options}
        shape = tuple(output_shape(op, whole, stored))
        differing = {key: value for key, value in options.items() if usual.get(key) != value}
        shapes = parts_of(op, whole, stored[0])
        name = self.new_node(op, [x.node for x in inputs], differing, helper, parts or {}, shapes)
        return Value(name, shape, tuple(order or natural(len(shape))))

    def same_axes(self, op, x, options=None, parts=None):
        """Adds a node whose output has the axes of x in their order."""
        return self.emit(op, [x], options, x.order, parts=parts)

    def plain(self, x):
        """Returns x with its axes stored in their order."""
        if x.plain:
            return x
        if (x.node, x.order) not in self.plain_forms:
            self.plain_forms[x.node, x.order] = self.emit(
                "permute", [x], {"order": list(x.order)}, helper=True
            )
        return self.plain_forms[x.node, x.order]

    def reshape(self, x, shape, helper=False):
        """Returns x in another shape, with the samples first."""
        shape = tuple(shape)
        if shape == x.shape:
            return x
        if not shape or shape[0] != self.batch or x.shape[0] != self.batch:
            raise Unsupported(f"a reshape of {x.shape} to {shape}, which mixes samples,")
        if len(shape) > 5:
            raise Unsupported(f"a tensor of {len(shape)} axes (there are at most 5)")
        if len(shape) == 1:
            raise Unsupported("a tensor of one number a sample without an axis for it")
        x = self.plain(x)
        if len(shape) == 2 and x.rank == 4:
            return self.emit("flatten", [x], helper=helper)
        return self.emit("reshape", [x], {"shape": list(shape[1:])}, helper=helper)

    def image(self, x, axis):
        """Returns x as N x C x H x W with C for the axis, and a function that brings such an image back."""
        (image,), restored = self.images([x], axis)
        return image, restored

    def images(self, values, axis):
        """Does so with several values of one number of axes."""
        first = values[0]
        if first.rank == 4 and first.order[axis] == 1 and all(x.order == first.order for x in values):
            images = [dataclasses.replace(x, order=natural(4)) for x in values]
            return images, lambda y: Value(y.node, y.stored, first.order)
        order = (0, axis, *(a for a in range(1, first.rank) if a != axis))
        rest = first.permuted(order).shape[2:]
        back = tuple(order.index(a) for a in range(first.rank))

        def image(x):
            moved = x.permuted(order)
            if len(rest) == 2:
                return self.plain(moved)
            return self.reshape(moved, (*moved.shape[:2], math.prod(rest), 1), helper=True)

        def restored(y):
            if len(rest) != 2:
                y = self.reshape(y, (*y.shape[:2], *rest), helper=True)
            return y.permuted(back)

        return [image(x) for x in values], restored

    # What the operators of several frameworks become

    def linear(self, x, out, parts):
        options = {"out": out, "bias": "bias" in parts}
        if x.rank == 2:
            return self.emit("linear", [self.plain(x)], options, parts=parts)
        # Over the last of more axes it is a 1 x 1 convolution over the channels.
        image, restored = self.image(x, x.rank - 1)
        return restored(self.emit("conv2d", [image], {**options, "kernel": 1, "matrix": True}, parts=parts))

    def batch_norm(self, x, options, parts):
        image, restored = self.image(x, 1) if x.rank != 4 else (self.plain(x), lambda y: y)
        return restored(self.emit("batch_norm", [image], options, parts=parts))

    def softmax(self, x, axis):
        if x.rank == 2:
            return self.emit("softmax", [self.plain(x)])
        image, restored = self.image(x, axis)
        return restored(self.emit("softmax", [image]))

    def mean(self, x, axes, keep):
        """Returns the mean over axes. Where `keep`, they stay with the extent 1."""
        stored = sorted(x.axis(axis) for axis in axes)
        if not stored or 0 in axes or len(set(stored)) < len(stored):
            raise Unsupported("a mean over the samples")
        if keep:
            if x.rank == 4 and stored == [2, 3]:
                return self.same_axes("global_average_pool", x)
            return self.same_axes("mean", x, {"axes": stored, "keep_dims": True})
        left = [axis for axis in natural(x.rank) if axis not in stored]
        order = tuple(left.index(axis) for axis in x.order if axis in left)
        return self.emit("mean", [x], {"axes": stored}, order)

    def concat(self, parts, axis):
        if len(parts) == 1:
            return parts[0]
        images, restored = self.images(parts, axis)
        return restored(self.emit("concat", images))

    def part(self, x, axis, begin, end, step=1):
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
        return self.same_axes("slice", x, options)

    def in_order(self, x, order):
        """Returns x with its axes in another order, in which the samples stay the first."""
        if order[0] != 0:
            raise Unsupported("a permutation that moves the samples from the first axis")
        return x.permuted(order)

    def add(self, a, b):
        if a.shape != b.shape:
            raise Unsupported(f"a sum of {self.text(a)} and {self.text(b)} (both have one shape)")
        if a.order != b.order:
            a, b = self.plain(a), self.plain(b)
        return self.emit("add", [a, b], order=a.order)

    def multiply(self, a, b):
        if math.prod(a.shape) < math.prod(b.shape):
            a, b = b, a
        if a.order != b.order and a.rank == b.rank:
            a, b = self.plain(a), self.plain(b)
        if a.stored != b.stored and (a.rank != 4 or b.stored != (*a.stored[:2], 1, 1)):
            said = f"{self.text(a)} and {self.text(b)} (a factor has the same shape, or N x C x 1 x 1)"
            raise Unsupported(f"a product of {said}")
        return self.emit("multiply", [a, b], order=a.order)
