"""Makes nodes of graph.json from what another framework calls its operators. The table of those operators is
elsewhere (pytorch/operators.py, onnx/rows.py); here is what the rows of both have at hand.

A Value is a tensor as the user's code sees it: a node's output, and the order in which its axes are read. So
a permutation costs nothing until an operator needs the axes in their order: a LayerNorm or a Linear over the
last axis of N x H x W x C works on the N x C x H x W that is stored.

What is computed of parameters and buffers alone has no samples. It is stored with one, as 1 x …, which its
order leaves out. The node that uses it has these steps within itself (framework/computed.h).
"""

import collections
import dataclasses
import inspect
import math

from antichain.graph_operators import DEFAULTS, MOST_AXES, PAIRS, one_or_two, output_shape
from antichain.graph_operators import padding, pair, parts_of, reach

WRONG = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)  # what odd options do to a row


class Unsupported(Exception):
    """What a row of the table can't translate: "max_pool2d with dilation 2". The caller says where it is."""


def refuse_if(condition, what):
    if condition:
        raise Unsupported(what)


def only(what, value, *supported):
    refuse_if(value not in supported, f"{what} {value}")


def attempt(steps, make, stand_in):
    """Makes nodes of all steps. Returns those that can't be made, each with what is not supported, so that
    one refusal has all of them. `stand_in` enters something for their results, if it knows of any: what
    is behind one of which it knows nothing makes no sentence of its own ("")."""
    problems = []
    for step in steps:
        try:
            make(step)
        except Unsupported as problem:
            stand_in(step)
            if str(problem):
                problems.append((step, str(problem)))
    return problems


class Table(dict):
    """The rows by the names of a framework's operators. A row is a function of a Shaping and of what the
    framework gives its operator, by the names that it has there. It returns a Value, or several. Its first
    argument is a computed tensor, unless the row takes what it gets (`raw`)."""

    def __init__(self):
        super().__init__()
        self.raw = set()

    def row(self, *names, raw=False):
        def enter(function):
            self.update(dict.fromkeys(names, function))
            self.raw.update(names if raw else ())
            return function

        return enter

    def known(self, name, keywords):
        """Returns those of the arguments that the row has."""
        parameters = inspect.signature(self[name]).parameters
        takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        return {key: value for key, value in keywords.items() if takes_all or key in parameters}

    def make(self, t, name, args, keywords):
        """Returns what the row makes of arguments. Throws Unsupported."""
        refuse_if(name not in self, f"'{name}'")
        joined = {x.axes for x in (*args, *keywords.values()) if isinstance(x, Joined)}
        if len(joined) == 1 and name in BY_POSITION:
            args, keywords = separated(args), dict(zip(keywords, separated(keywords.values())))
            return Joined(self.make(t, name, args, keywords), joined.pop())
        try:
            if args and name not in self.raw:
                args = [t.tensor(args[0]), *args[1:]]
            return self[name](t, *args, **keywords)
        except WRONG as problem:
            raise Unsupported(f"'{name}' with these shapes and options ({problem})") from problem


def separated(values):
    """Returns values, those of joined positions as they were before."""
    return [x.of if isinstance(x, Joined) else x for x in values]


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
    """A tensor whose first axes are one, the samples' among them, for what computes position by position:
    x.view(-1, C) of N x T x C."""

    of: Value
    axes: int

    @property
    def shape(self):
        return (math.prod(self.of.shape[: self.axes]), *self.of.shape[self.axes :])


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


# Operators that compute each position by itself, so that positions may be joined.
BY_POSITION = set(
    "add addmm div dropout gelu layer_norm linear mul relu rms_norm sigmoid silu softmax sub tanh".split()
)


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

    # What the operators of several frameworks become

    def formula(self, steps, *operands, channels=False):
        """Returns a formula (layers/elementwise.h) of operands, which its steps call a, b and c: computed
        tensors, a parameter and numbers. A parameter that is a vector has a number for each channel, where
        `channels`."""
        values, parts, options, words = [], {}, {}, {}
        operands = [x.of if isinstance(x, Widened) else x for x in operands]
        operands = [self.number_of(x, operands) for x in operands]
        sampled = any(isinstance(x, Value) and x.sampled for x in operands)
        for name, x in zip("abc", operands):
            if isinstance(x, (int, float)):
                words[name] = repr(float(x))
            elif not sampled or isinstance(x, Padded) or (isinstance(x, Value) and x.sampled):
                words[name] = f"x{len(values)}"
                values.append(self.tensor(x))
            else:
                refuse_if(parts, "a formula of two parameters")
                words[name], parts, options["parameter"] = "p", {"": x}, list(self.parameter_shape(x))
        refuse_if(not values, "a formula of numbers alone")
        if not sampled:
            rank = max(x.rank for x in values)
            values = [self.reshape(x, (1,) * (rank - x.rank) + x.shape, helper=True) for x in values]
        elif parts and not channels:
            parts[""], axis = self.without_ones_behind(parts[""], values[0].rank)
            shape = self.parameter_shape(parts[""])
            options["parameter"] = list(shape) or [1] * isinstance(parts[""], Value)
            options |= {} if axis == values[0].rank - 1 else {"parameter_axis": axis}
        shapes = {x.shape for x in values}
        refuse_if(len({x.rank for x in values}) > 1, f"a formula of tensors of the shapes {shapes}")
        order = values[0].order
        if parts or len(shapes) > 1 or any(x.order != order for x in values):
            values, order = [self.plain(x) for x in values], None
        if channels and len(options.get("parameter", ())) == 1 and values[0].rank > 2:
            options["parameter_axis"] = 1
        options["steps"] = [" ".join(words.get(word, word) for word in step.split()) for step in steps]
        return self.emit("elementwise", values, options, order, parts=parts)

    def number_of(self, x, beside):
        """Returns the number of a constant among the operands `beside` that is one, or x."""
        return x

    def without_ones_behind(self, x, rank):
        """Returns a parameter of a formula, and its last axis among those of the result. Where only its shape
        was changed, to C x 1 x 1, it is the parameter itself."""
        return x, rank - 1

    def activate(self, x, function):
        return self.same_axes("activate", x, {"function": function})

    def clamp(self, x, low, high):
        """Returns x within bounds; None is no bound."""
        if low == 0 and (high is None or high > 3e38):
            return self.same_axes("relu", x)
        if (low, high) == (0, 6):
            return self.activate(x, "relu6")
        none = float("inf")
        return self.formula(["clamp a b c"], x, -none if low is None else low, none if high is None else high)

    def dropout(self, x, op, p, **options):
        """Returns x with numbers or samples left out with the probability p."""
        refuse_if(not 0 <= p < 1, f"{op} of {p}")
        return self.same_axes(op, x, {"p": p, **options}) if p else x

    def conv(self, x, shape, parts, pads, **options):
        """Returns the convolution of an image with weights of that shape, which may be those of a line."""
        kernel = (1, *shape[2:])[-2:]
        options |= {"out": shape[0], "kernel": kernel, "pad": padding(pads), "bias": "bias" in parts}
        return self.emit("conv2d", [x], {**options, **self.line(shape)}, parts=parts)

    @staticmethod
    def line(shape):
        return {"line": True} if len(shape) == 3 else {}

    def conv_transpose(self, x, shape, parts, pads, groups, **options):
        kernel = (1, *shape[2:])[-2:]
        options |= {"out": shape[1] * groups, "kernel": kernel, "pad": padding(pads), "groups": groups}
        options |= self.line(shape)
        refuse_if(pads[:2] != pads[2:], "a transposed convolution with another padding at the ends")
        return self.emit("conv_transpose2d", [x], {**options, "bias": "bias" in parts}, parts=parts)

    def adaptive_pool(self, x, h, w):
        if (h, w) == x.shape[2:]:
            return x
        if (h, w) == (1, 1):
            return self.emit("global_average_pool", [x])
        return self.emit("adaptive_average_pool", [x], {"h": h, "w": w})

    def linear(self, x, out, parts, in_first=False):
        """Returns x times a weight out x I, or I x out, and what is added. x has I last."""
        options = {"out": out, "bias": "bias" in parts}
        if in_first:
            return self.emit("linear", [self.plain(x)], {**options, "in_first": True}, parts=parts)
        if x.rank != 4 or x.axis(3) != 1:
            if x.sampled and self.last_is_last(x):
                stored = dataclasses.replace(x, order=natural(x.rank))
                return self.emit("linear", [stored], options, x.order, parts=parts)
            return self.emit("linear", [self.plain(x)], options, parts=parts)
        # Over the channels of an image it is a 1 x 1 convolution, which has them where they are.
        image, restored = self.image(x, 3)
        return restored(self.emit("conv2d", [image], {**options, "kernel": 1, "matrix": True}, parts=parts))

    def batch_norm(self, x, options, parts):
        options = {**options, "affine": "weight" in parts}
        image, restored = self.image(x, 1) if x.rank != 4 else (self.plain(x), lambda y: y)
        return restored(self.emit("batch_norm", [image], options, parts=parts))

    def layer_norm(self, x, axis, over, eps, parts):
        """Returns x normalised over its last axes from that one on, or over its channels, which are `axis`
        then. `over` is what the node says of them."""
        options = {"eps": eps, "affine": bool(parts), "bias": "bias" in parts or not parts}
        if len(over) <= 1 and x.rank == 4 and x.axis(axis) == 1:
            return self.same_axes("layer_norm", x, {"channels": True, **options}, parts)
        if len(over) <= 1 and self.last_is_last(x):
            return self.same_axes("layer_norm", x, {"over": list(over), **options}, parts)
        return self.emit("layer_norm", [self.plain(x)], {"over": list(over), **options}, parts=parts)

    @staticmethod
    def last_is_last(x):
        """Says whether the last axis of x is stored last, whatever the order of the others."""
        return x.sampled and x.axis(-1) == len(x.stored) - 1

    def group_norm(self, x, groups, eps, parts):
        options = {"groups": groups, "eps": eps, "affine": bool(parts)}
        y = self.emit("group_norm", [self.plain(self.with_samples(x))], options, parts=parts)
        return self.as_before(x, y)

    def with_heads(self, x):
        """Returns N x heads x T x D, or N x T x D of one head, as N x T x heads · D, and the heads."""
        if x.rank == 3:
            return self.plain(x), 1
        n, heads, length, width = x.shape
        return self.reshape(x.permuted((0, 2, 1, 3)), (n, length, heads * width), helper=True), heads

    def by_heads(self, y, like):
        """Returns N x T x heads · D in the form that `like` has."""
        if like.rank == 3:
            return y
        n, heads, length, width = like.shape
        shape = (n, length, heads, y.shape[2] // heads)
        return self.reshape(y, shape, helper=True).permuted((0, 2, 1, 3))

    def attention(self, q, k, v, causal, dropout, scale):
        """Returns attention of N x heads x T x D; keys and values may be Repeated."""
        k, v = (x.of if isinstance(x, Repeated) and x.axis == 1 else x for x in (k, v))
        q, k, v = (self.tensor(x) for x in (q, k, v))
        (queries, heads), (keys, kv_heads), (values, _) = (self.with_heads(x) for x in (q, k, v))
        options = {"heads": heads, "causal": causal, "dropout": dropout}
        options |= {} if kv_heads == heads else {"kv_heads": kv_heads}
        if abs(scale * math.sqrt(q.shape[-1]) - 1) > 1e-6:
            options["scale"] = scale
        given = self.packed(queries, keys, values) or [queries, keys, values]
        return self.by_heads(self.emit("attention", given, options), q)

    def packed(self, *values):
        """Returns what values are the whole of, one part behind the other on the last axis, or None."""
        of = [self.parts.get(x.node) for x in values]
        if None in of or any(x.node != of[0][0].node or not x.plain or x.rank != 3 for x, _ in of):
            return None
        begins, ends = ([options[end] for _, options in of] for end in ("begin", "end"))
        last = all(options["axis"] == 2 and options["step"] == 1 for _, options in of)
        whole = last and [0, *ends] == [*begins, of[0][0].shape[2]]
        return [of[0][0]] if whole else None

    def softmax(self, x, axis):
        if x.rank == 2 and x.sampled:
            return self.emit("softmax", [self.plain(x)])
        image, restored = self.image(x, axis)
        return restored(self.emit("softmax", [image]))

    def matmul(self, a, b):
        """Returns the products of the matrices of a and b, which have as many of them."""
        refuse_if(a.rank != b.rank or a.shape[:-2] != b.shape[:-2],
                  f"a product of matrices of {a.shape} and {b.shape}, which are not as many,")
        matrices, options = [], {}
        for name, x in (("transpose_a", a), ("transpose_b", b)):
            turned = x.permuted((*natural(x.rank - 2), x.rank - 1, x.rank - 2))
            options[name] = turned.plain and not x.plain
            matrices.append(self.plain(turned if options[name] else x))
        return self.emit("matmul", matrices, options)

    def mean(self, x, axes, keep):
        """Returns the mean over axes. Where `keep`, they stay with the extent 1."""
        stored = sorted(x.axis(axis) for axis in axes)
        refuse_if(not stored or 0 in stored or len(set(stored)) < len(stored), "a mean over the samples")
        runs = [axis for axis in stored if axis - 1 not in stored]
        if len(runs) > 2:  # the program averages two at once
            first = [axis for axis in axes if x.axis(axis) < runs[2]]
            y = self.mean(x, first, True)
            y = self.mean(y, [axis for axis in axes if axis not in first], True)
            left = [extent for axis, extent in enumerate(y.shape) if axis not in axes]
            return y if keep else self.reshape(y, left)
        if keep:
            if x.rank == 4 and stored == [2, 3] and x.sampled:
                return self.same_axes("global_average_pool", x)
            return self.same_axes("mean", x, {"axes": stored, "keep_dims": True})
        left = [axis for axis in natural(len(x.stored)) if axis not in stored]
        order = tuple(left.index(axis) for axis in x.order if axis in left)
        return self.emit("mean", [x], {"axes": stored}, order)

    def concat(self, parts, axis):
        refuse_if(parts[0].axis(axis) == 0, "parts that are joined along the samples")
        refuse_if(len({x.rank for x in parts}) > 1, "parts of different numbers of axes that are joined")
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
        refuse_if(x.axis(axis) == 0, "a part of the samples")
        refuse_if(step < 1 or begin >= end, f"an empty part [{begin}:{end}:{step}]")
        options = {"axis": x.axis(axis), "begin": begin, "end": end, "step": step}
        y = self.same_axes("slice", x, options)
        self.parts[y.node] = x, options
        return y

    def select(self, x, axis, place):
        """Returns x at one place of an axis, which is left out."""
        y = self.part(x, axis, place, place + 1)
        at, whole = y.axis(axis), dataclasses.replace(y, order=natural_of(y.stored, y.sampled))
        left = self.reshape(whole, [whole.shape[i] for i, a in enumerate(whole.order) if a != at])
        order = (a - (a > at) for a in y.order if a != at)
        return dataclasses.replace(left, order=tuple(order))

    def in_order(self, x, order):
        """Returns x with its axes in another order."""
        refuse_if(sorted(order) != list(natural(x.rank)), "a permutation of other axes than there are")
        return x.permuted(order)

    def add(self, a, b):
        if 0 in (a, b):
            return self.tensor(b if a == 0 else a)
        if not self.alike(a, b):
            return self.formula(["add a b"], a, b)
        if a.order != b.order:
            a, b = self.plain(a), self.plain(b)
        return self.emit("add", [a, b], order=a.order)

    def multiply(self, a, b):
        if 1 in (a, b):
            return self.tensor(b if a == 1 else a)
        a, b = (x.of if isinstance(x, Widened) else x for x in (a, b))
        if isinstance(a, Value) and isinstance(b, Value) and math.prod(a.shape) < math.prod(b.shape):
            a, b = b, a
        gates = all(isinstance(x, Value) and x.sampled and x.rank == 4 for x in (a, b))
        if not self.alike(a, b) and not (gates and a.plain and b.plain and b.shape == (*a.shape[:2], 1, 1)):
            return self.formula(["multiply a b"], a, b)
        if a.order != b.order:
            a, b = self.plain(a), self.plain(b)
        return self.emit("multiply", [a, b], order=a.order)

    @staticmethod
    def alike(a, b):
        return all(isinstance(x, Value) and x.sampled for x in (a, b)) and a.shape == b.shape
