"""What stands for tensors while they are translated.

A Value is a tensor as the user's code sees it: a node's output, and the order in which its axes are read. So
a permutation costs nothing until an operator needs the axes in their order: a LayerNorm or a Linear over the
last axis of N x H x W x C works on the N x C x H x W that is stored.

What is computed of parameters and buffers alone has no samples. It is stored with one, as 1 x …, which its
order leaves out. The node that uses it has these steps within itself (framework/computed.h).
"""

import collections
import dataclasses
import math

from antichain.graph_operators import reach


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
        return len(self.order)

    @property
    def sampled(self):
        return 0 in self.order

    @property
    def plain(self):
        return self.order == natural_of(self.stored, self.sampled)[: self.rank]

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


@dataclasses.dataclass(frozen=True)
class Widened:
    """A value that is repeated along axes of extent 1, for a product."""

    of: Value
    shape: tuple


@dataclasses.dataclass(frozen=True)
class Joined:
    """A tensor of which one axis, `at`, is that of the samples and others in one: x.view(-1, C) of N x T x C,
    or windows of images, x.view(-1, 49, C) of N x 64 x 49 x C. In `of` they are apart and come first, the
    samples' before the others, and the other axes follow as they are here. `lead` says which of these first
    axes follow one another in the joined one."""

    of: object  # a Value, or what a loss computes of one
    lead: tuple
    at: int = 0

    @property
    def rank(self):
        return self.of.rank - len(self.lead) + 1

    @property
    def shape(self):
        first, rest = self.of.shape[: len(self.lead)], self.of.shape[len(self.lead) :]
        return (*rest[: self.at], math.prod(first), *rest[self.at :])

    @property
    def axes(self):
        """Returns which axes are joined, and how."""
        return self.of.shape[: len(self.lead)], self.lead, self.at

    def __str__(self):
        return f"a tensor {self.shape}, of which an axis is that of the samples and of others in one"

    def apart(self, axis):
        """Returns which axis of `of` an axis is, not the joined one."""
        refuse_if(axis == self.at, "an operator along an axis of which samples are a part")
        return len(self.lead) + axis - (axis > self.at)

    def permuted(self, order):
        rest = [self.apart(axis) for axis in order if axis != self.at]
        of = self.of.permuted((*range(len(self.lead)), *rest))
        return Joined(of, self.lead, tuple(order).index(self.at))

    def in_order(self):
        """Returns the tensor with all axes apart in the order in which they are here, and which of them is
        the samples'."""
        first = len(self.lead)
        order = (*range(first, first + self.at), *self.lead, *range(first + self.at, self.of.rank))
        return self.of.permuted(order), order.index(0)


@dataclasses.dataclass(frozen=True)
class Repeated:
    """A value of which each part along the axis stands so many times, one behind the other: the keys and
    values that several heads of attention share."""

    of: Value
    axis: int
    times: int


@dataclasses.dataclass(frozen=True)
class Looked:
    """Rows of a weight at places that are the same for all samples, for a sum."""

    weight: object
    places: tuple


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


def natural_of(stored, sampled):
    """Returns the order of the axes as they are stored."""
    return natural(len(stored)) if sampled else natural(len(stored))[1:]


def unknown(shape):
    """Returns what stands for a value that is not translated, so that what is behind it can be."""
    return Value("?", tuple(shape), natural(len(shape)))


def same_padding(extents, kernel, stride, dilation, more_first=False):
    """Returns the padding with which windows give ⌈extent / stride⌉ numbers; the odd one is at the end."""
    windows = zip(extents, kernel, stride, dilation)
    total = [max(0, (math.ceil(extent / s) - 1) * s + reach(k, d) - extent) for extent, k, s, d in windows]
    less, more = [n // 2 for n in total], [n - n // 2 for n in total]
    return more + less if more_first else less + more
