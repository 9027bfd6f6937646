"""Brings values into the order and the shape that an operator needs."""

import dataclasses
import math

from antichain.graph_operators import DEFAULTS, MOST_AXES, PAIRS, one_or_two, output_shape, pair, parts_of
from antichain.translation.values import Joined, Padded, Repeated, Value, Widened, natural, natural_of
from antichain.translation.values import refuse_if


class Shaping:
    """Brings values into the order and the shape that an operator needs. A class that has it adds the nodes:
    new_node(op, inputs, options, helper, parts, shapes) adds one and returns its name."""

    def __init__(self, batch):
        self.batch = batch
        self.plain_forms = {}
        self.permuted = {}  # by the nodes of permutations, what they are of
        self.parts = {}  # by the nodes of slices, what they are of, and their options
        self.reshaped = {}  # by the nodes of reshapes, what they were made of

    @staticmethod
    def text(x):
        """Returns the shape of x as a refusal has it."""
        return str(x.shape)

    # What a row was given

    def tensor(self, x, what="an input"):
        """Returns x, which must be a computed tensor of which nothing is pending."""
        refuse_if(isinstance(x, Padded), "padding by zeros for anything but a convolution or average pooling")
        refuse_if(isinstance(x, Widened), "an expanded tensor for anything but a product")
        refuse_if(isinstance(x, Joined), f"a reshape to {x.shape if isinstance(x, Joined) else ()}, which "
                  "mixes samples, for anything but what computes each position by itself")
        refuse_if(isinstance(x, Repeated), "repeated heads for anything but the keys and values of attention")
        refuse_if(not isinstance(x, Value), f"{what} that is {x}")
        return x

    def image_of(self, x, what):
        x = self.plain(self.tensor(x))
        refuse_if(x.rank != 4, f"'{what}' of a tensor {self.text(x)} that is not N x C x H x W")
        return x

    def padded_image(self, x, what):
        """Returns an image and the zeros that are pending around it."""
        x, zeros = (x.of, x.zeros) if isinstance(x, Padded) else (x, [0] * 4)
        return self.image_of(x, what), zeros

    @staticmethod
    def axis(x, axis):
        """Returns an axis, which may count from the end."""
        refuse_if(not -x.rank <= axis < x.rank, f"axis {axis} of a tensor of {x.rank} axes")
        return axis % x.rank

    # What makes nodes

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
        sampled = any(x.sampled for x in inputs)
        return Value(name, shape, natural_of(shape, sampled) if order is None else tuple(order))

    def same_axes(self, op, x, options=None, parts=None):
        """Adds a node whose output has the axes of x in their order."""
        return self.emit(op, [x], options, x.order, parts=parts)

    def plain(self, x):
        """Returns x with its axes stored in their order."""
        if x.plain:
            return x
        moves = x.sampled and x.order[0] != 0
        refuse_if(moves, "a permutation that moves the samples from the first axis")
        if (x.node, x.order) not in self.plain_forms:
            order = list(x.order) if x.sampled else [0, *x.order]
            permuted = self.emit("permute", [x], {"order": order}, helper=True)
            self.plain_forms[x.node, x.order] = permuted
            self.permuted[permuted.node] = x
        return self.plain_forms[x.node, x.order]

    def reshape(self, x, shape, helper=False):
        """Returns x in another shape, with the samples first."""
        shape = tuple(shape)
        if shape == x.shape:
            return x
        mixes = x.sampled and (not shape or shape[0] != x.shape[0] or shape[0] not in (1, self.batch))
        refuse_if(mixes, f"a reshape of {x.shape} to {shape}, which mixes samples,")
        whole = shape if x.sampled else (1, *(shape or (1,)))
        refuse_if(len(whole) > MOST_AXES, f"a tensor of {len(shape)} axes (there are at most {MOST_AXES})")
        x = self.plain(x)
        source = self.reshaped.get(x.node, x)  # two reshapes are one
        x = source if source.sampled == x.sampled else x
        if x.shape == shape:
            return x
        if len(whole) == 2 and len(x.stored) == 4:
            y = self.emit("flatten", [x], helper=helper)
        else:
            y = self.emit("reshape", [x], {"shape": list(whole[1:])}, helper=helper)
        self.reshaped[y.node] = x
        return dataclasses.replace(y, order=y.order[: len(shape)]) if not x.sampled else y

    def with_samples(self, x):
        """Returns what has no samples as a tensor of one."""
        return x if x.sampled else dataclasses.replace(x, order=(0, *x.order))

    def as_before(self, x, y):
        """Returns y without samples where x has none."""
        return y if x.sampled else dataclasses.replace(y, order=y.order[1:])

    def image(self, x, axis):
        """Returns x as N x C x H x W with C for the axis, and a function that brings such an image back."""
        (image,), restored = self.images([x], axis)
        return image, restored

    def images(self, values, axis):
        """Does so with several values of one number of axes."""
        first = values[0]
        if not first.sampled:
            images, restored = self.images([self.with_samples(x) for x in values], axis + 1)
            return images, lambda y: self.as_before(first, restored(y))
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
