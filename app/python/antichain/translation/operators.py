"""What the operators of several frameworks become."""

import dataclasses
import math

from antichain.graph_operators import padding
from antichain.translation.shaping import Shaping
from antichain.translation.values import Padded, Repeated, Value, Widened, natural, natural_of, refuse_if


class CommonOperators(Shaping):
    def formula(self, steps, *operands, channels=None):
        """Returns a formula (layers/elementwise.h) of operands, which its steps call a, b and c: computed
        tensors, a parameter and numbers. A parameter that is a vector has a number for each place of the axis
        `channels`, where that is given."""
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
        if channels and len(options.get("parameter", ())) == 1 and values[0].rank - 1 > channels:
            options["parameter_axis"] = int(channels)
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

    def batch_norm(self, x, options, parts, axis=1):
        options = {**options, "affine": "weight" in parts}
        image, restored = self.image(x, axis) if x.rank != 4 or axis != 1 else (self.plain(x), lambda y: y)
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
        """Returns N x heads x T x D, or N x T x D of one head, as N x T x heads · D, and the heads. Further
        axes before T are heads, too."""
        if x.rank == 3:
            return self.plain(x), 1
        n, *heads, length, width = x.shape
        turned = x.permuted((0, x.rank - 2, *range(1, x.rank - 2), x.rank - 1))
        heads = math.prod(heads)
        return self.reshape(turned, (n, length, heads * width), helper=True), heads

    def by_heads(self, y, like):
        """Returns N x T x heads · D in the form that `like` has."""
        if like.rank == 3:
            return y
        n, *heads, length, width = like.shape
        shape = (n, length, *heads, y.shape[2] // math.prod(heads))
        return self.reshape(y, shape, helper=True).permuted((0, *range(2, like.rank - 1), 1, like.rank - 1))

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
