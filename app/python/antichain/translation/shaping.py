"""Brings values into the order and the shape that an operator needs."""

import contextlib
import dataclasses
import math

from antichain.graph_operators import DEFAULTS, MOST_AXES, PAIRS, one_or_two, output_shape, pair, parts_of
from antichain.translation.values import Joined, Padded, Repeated, Unsupported, Value, Widened, natural
from antichain.translation.values import natural_of, refuse_if


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
        refuse_if(isinstance(x, Joined), str(x))
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
        axes = max(len(x.stored) for x in inputs)
        refuse_if(axes > MOST_AXES, f"a tensor of {axes} axes (there are at most {MOST_AXES})")
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
        if len(x.stored) > MOST_AXES:
            return self.plain_in_steps(x)
        if (x.node, x.order) not in self.plain_forms:
            order = list(x.order) if x.sampled else [0, *x.order]
            permuted = self.emit("permute", [x], {"order": order}, helper=True)
            self.plain_forms[x.node, x.order] = permuted
            self.permuted[permuted.node] = x
        return self.plain_forms[x.node, x.order]

    def reshape(self, x, shape, helper=False):
        """Returns x in another shape, Joined where the samples' axis becomes one with others."""
        shape = tuple(shape)
        if shape == x.shape:
            return x
        if isinstance(x, Value) and not x.sampled:
            y = self.stored_as(x, (1, *(shape or (1,))), helper)
            return dataclasses.replace(y, order=y.order[: len(shape)])
        x, place = x.in_order() if isinstance(x, Joined) else (x, x.order.index(0))
        before, after = math.prod(x.shape[:place]), math.prod(x.shape[place + 1 :])
        for at in range(len(shape)):
            outer, inner = math.prod(shape[:at]), math.prod(shape[at + 1 :])
            if outer and inner and before % outer == 0 and after % inner == 0:
                break
        else:
            raise Unsupported(f"a reshape of {x.shape} to {shape}, which mixes samples,")
        last = x.rank - (len(shape) - at - 1)
        own = [place, *(axis for axis in range(at, last) if axis != place)]
        same = x.shape[:at] == shape[:at] and x.shape[last:] == shape[at + 1 :] and at <= place < last
        if same and all(x.shape[axis] > 1 for axis in own[1:]):
            y = x.permuted((*own, *range(at), *range(last, x.rank)))
            return self.joined(y, [own.index(axis) for axis in range(at, last)], at)
        # The parts of the joined axis before and behind the samples are an axis each.
        parts = [extent for extent in (before // outer, after // inner) if extent > 1]
        apart = x.permuted((place, *(axis for axis in range(x.rank) if axis != place)))
        y = self.stored_as(apart, (x.shape[place], *shape[:at], *parts, *shape[at + 1 :]), helper)
        behind = at + 1 + len(parts)
        y = y.permuted((0, *range(at + 1, behind), *range(1, at + 1), *range(behind, y.rank)))
        lead = [*range(1, len(parts) + 1)]
        lead.insert(before > outer, 0)
        return self.joined(y, lead, at)

    def plain_in_steps(self, x):
        """Returns x, which has more axes than a node can have, with its axes stored in their order. Each step
        moves some that stay side by side."""
        order, axes = [*x.order], sorted(x.order)
        for i in range(1, len(order)):
            j = axes.index(order[i])
            k = j
            while j > i and k < len(axes) and axes[k] == order[i + k - j]:
                k += 1
            if j > i:
                groups = [axes[:1], axes[1:i], axes[i:j], axes[j:k], axes[k:]]
                shape = [math.prod(x.stored[axis] for axis in group) for group in groups]
                y = self.stored_as(dataclasses.replace(x, order=natural(len(order))), tuple(shape), True)
                axes = sum((groups[g] for g in (0, 1, 3, 2, 4)), [])
                y = self.plain(y.permuted((0, 1, 3, 2, 4)))
                x = self.stored_as(y, tuple(x.stored[axis] for axis in axes), True)
                order, axes = [axes.index(axis) for axis in order], [*natural(len(axes))]
        return x

    def stored_as(self, x, shape, helper):
        """Returns x with another shape as it is stored, of one sample where x has none. One of more axes than
        a node can have is that of the node before, until it has fewer again."""
        x = self.plain(x)
        source = self.reshaped.get((x.node, x.stored), x)  # two reshapes are one
        x = source if source.sampled == x.sampled else x
        if x.stored == shape:
            return x
        if len(shape) > MOST_AXES:
            refuse_if(not x.sampled, f"a tensor of {len(shape)} axes (there are at most {MOST_AXES})")
            y = Value(x.node, shape, natural(len(shape)))
            self.reshaped[y.node, y.stored] = x
            return y
        if len(shape) == 2 and len(x.stored) == 4:
            y = self.emit("flatten", [x], helper=helper)
        else:
            y = self.emit("reshape", [x], {"shape": list(shape[1:])}, helper=helper)
        self.reshaped[y.node, y.stored] = x
        return y

    @staticmethod
    def joined(x, lead, at):
        """Returns x with its first axes as one. The samples are the first of all."""
        if len(lead) > 1:
            return Joined(x, tuple(lead), at)
        return x.permuted((*range(1, at + 1), 0, *range(at + 1, x.rank)))

    def joined_of_few(self, x):
        """Returns what is joined with one axis at most before the samples and one behind them."""
        if not isinstance(x, Joined) or len(x.lead) == 2:
            return x
        of, place = x.in_order()
        own = range(x.at, x.at + len(x.lead))
        groups = [[axis for axis in own if axis < place], [axis for axis in own if axis > place]]
        rest = [axis for axis in range(of.rank) if axis not in own]
        apart = of.permuted((place, *groups[0], *groups[1], *rest))
        parts = [math.prod(of.shape[axis] for axis in group) for group in groups if group]
        y = self.reshape(apart, (of.shape[place], *parts, *(of.shape[axis] for axis in rest)), helper=True)
        lead = [*range(1, len(parts) + 1)]
        lead.insert(bool(groups[0]), 0)
        return Joined(y, tuple(lead), x.at)

    def joined_constant(self, x):
        """Returns a constant that has several parts for each sample as one that is joined, or x."""
        return x

    @staticmethod
    def samples_first(x):
        """Returns a value that has its samples behind other axes as one that is Joined of theirs alone, or
        x."""
        at = x.order.index(0) if isinstance(x, Value) and x.sampled else 0
        first = lambda: x.permuted((at, *(axis for axis in range(x.rank) if axis != at)))
        return Joined(first(), (0,), at) if at else x

    def apart_as(self, like):
        """Does what else a row needs that gets tensors with the axes apart that `like` has joined."""
        return contextlib.nullcontext()

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
        samples = first.order.index(0)
        order = (samples, axis, *(a for a in range(first.rank) if a not in (samples, axis)))
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
