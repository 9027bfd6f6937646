"""A loss while it is translated: what it computes element by element stays a formula until it is summed, so
that a loss is one node: formula_loss, or softmax_cross_entropy (layers/formula_loss.h,
layers/softmax_cross_entropy.h). Sums and means may be added up with weights.
"""

import copy
import dataclasses
import math

from antichain.pytorch.calls import Kind, Tensor
from antichain.pytorch.operators import ROWS
from antichain.pytorch.operators.table import is_number
from antichain.pytorch.translate import Translation
from antichain.translation import Unsupported, Value, Widened, refuse_if

MOST_STEPS = 24  # of a formula: ElementwiseProgram


@dataclasses.dataclass(frozen=True)
class Formula:
    """Numbers that are not computed yet: a formula of values, in the steps of layers/elementwise.h."""

    steps: tuple
    values: tuple
    shape: tuple
    constants: tuple = ()  # for the operand p
    axis: int = -1  # on which they lie

    @property
    def rank(self):
        return len(self.shape)


@dataclasses.dataclass(frozen=True)
class PartialSum:
    """A formula that is summed over some axes but not over the samples."""

    of: Formula
    extent: int  # of these axes together
    axes: tuple
    keep: bool  # them, of extent 1

    @property
    def shape(self):
        kept = [(axis, 1 if axis in self.axes else n) for axis, n in enumerate(self.of.shape)]
        return tuple(n for axis, n in kept if self.keep or axis not in self.axes)

    @property
    def rank(self):
        return len(self.shape)


@dataclasses.dataclass(frozen=True)
class LogProbabilities:
    """log_softmax of a value over its classes, which is a part of the loss behind it."""

    of: Value


@dataclasses.dataclass(frozen=True)
class Term:
    """A node of graph.json, and how often its loss counts."""

    op: str
    inputs: tuple
    options: dict
    weight: float = 1.0


class Terms(tuple):
    """Losses that are added up."""

    def times(self, factor):
        return Terms(dataclasses.replace(term, weight=term.weight * factor) for term in self)

    def plus(self, number):
        """Adds a number, which becomes a part of a mean of a formula."""
        for i, term in enumerate(self):
            if term.op == "formula_loss" and term.options.get("reduction", "mean") == "mean" and term.weight:
                steps = [*term.options["steps"]]
                steps.append(f"add s{len(steps) - 1} {number / term.weight!r}")
                more = dataclasses.replace(term, options={**term.options, "steps": steps})
                return Terms((*self[:i], more, *self[i + 1 :]))
        raise Unsupported(f"{number} added to a loss that has no mean of a formula (leave it out)")


def _linear(step, of):
    """Carries out one step of a formula of Terms and numbers."""
    name, *operands = step.split()
    a, *rest = (of[word] if word in of else float(word) for word in operands)
    b = rest[0] if rest else None
    both, one = isinstance(a, Terms) and isinstance(b, Terms), isinstance(a, Terms)
    if name == "negate":
        return a.times(-1)
    if name in ("add", "subtract") and both:
        return Terms((*a, *b.times(-1 if name == "subtract" else 1)))
    if name in ("multiply", "divide") and one and not both and (name == "multiply" or b):
        return a.times(b if name == "multiply" else 1 / b)
    if name == "multiply" and not both and not isinstance(a, Formula):
        return b.times(a)
    if name in ("add", "subtract") and not both and not isinstance(b if one else a, Formula):
        loss, number = (a, b) if one else (b, a)
        return (loss.times(-1) if b is loss and name == "subtract" else loss).plus(
            -number if one and name == "subtract" else number
        )
    raise Unsupported(f"'{name}' of a loss that is summed up, besides sums and products with numbers,")


class LossTranslation(Translation):
    """Translates the calls of a loss behind the nodes of a network."""

    def __init__(self, batch, names, tensors):
        super().__init__(batch, names, tensors)
        self.tensors = tensors  # constants by name

    def of_networks(self):
        """Returns a translation that adds to the same nodes, and in which formulas are computed at once."""
        other = copy.copy(self)
        other.__class__ = Translation
        return other

    # Formulas stay formulas

    def tensor(self, x, what="an input"):
        if isinstance(x, PartialSum):
            return self.stored(x)
        if isinstance(x, LogProbabilities):
            return ROWS["log_softmax"](self.of_networks(), x.of, dim=1)
        return x if isinstance(x, (Formula, Terms)) else super().tensor(x, what)

    def stored(self, x):
        """Returns what is computed of a formula by nodes of its own."""
        if isinstance(x, PartialSum):
            y = self.stored(x.of)
            mean = self.of_networks().mean(y, list(x.axes), x.keep)
            return self.of_networks().multiply(mean, x.extent)
        if not isinstance(x, Formula):
            return self.tensor(x)
        values, words = [self.plain(v) for v in x.values], {}
        if x.constants:
            shape = [self.batch, *(1,) * (x.rank - 1)]
            shape[x.axis] = len(x.constants)
            words["p"] = f"x{len(values)}"
            values.append(self.filled(shape, x.constants))
        steps = [" ".join(words.get(w, w) for w in step.split()) for step in x.steps]
        return self.emit("elementwise", values, {"steps": steps})

    def computed_now(self, x):
        """Returns what a node computes, where x is a formula or behind a loss's log_softmax."""
        return self.stored(x) if isinstance(x, (Formula, PartialSum, LogProbabilities)) else x

    def emit(self, op, inputs, *args, **options):
        return super().emit(op, [self.stored(x) for x in inputs], *args, **options)

    def plain(self, x):
        return super().plain(self.stored(x))

    def images(self, values, axis):
        return super().images([self.stored(x) for x in values], axis)

    def same_axes(self, op, x, options=None, parts=None):
        if op == "relu":
            return self.formula(["relu a"], x)
        return super().same_axes(op, self.stored(x), options, parts)

    def part(self, x, *places):
        return super().part(self.computed_now(x), *places)

    def concat(self, parts, axis):
        return super().concat([self.computed_now(x) for x in parts], axis)

    def matmul(self, a, b):
        return super().matmul(self.computed_now(a), self.computed_now(b))

    def activate(self, x, function):
        return self.formula(["sigmoid a"], x) if function == "sigmoid" else super().activate(x, function)

    def in_order(self, x, order):
        return super().in_order(self.stored(x) if isinstance(x, Formula) else x, order)

    def reshape(self, x, shape, helper=False):
        return super().reshape(self.stored(x), shape, helper)

    def as_formula(self, x):
        if isinstance(x, Formula):
            return x
        x = self.plain(self.tensor(x))
        return Formula(("add x0 0",), (x,), x.shape)

    def formula(self, steps, *operands, channels=None):
        if any(isinstance(x, Terms) for x in operands):
            of = dict(zip("abc", operands))
            for i, step in enumerate(steps):
                of[f"s{i}"] = _linear(step, of)
            return of[f"s{len(steps) - 1}"]
        return self.one_formula(steps, dict(zip("abc", operands)))

    def one_formula(self, steps, operands):
        """Returns a formula of operands, which may be formulas, by the names that the steps call them."""
        words, values, all_steps, constants, axis, shapes = {}, [], [], (), -1, []

        def word_of(value):
            if value not in values:
                values.append(value)
            return f"x{values.index(value)}"

        for name, x in operands.items():
            x = x.of if isinstance(x, Widened) else x
            if isinstance(x, Formula) and constants and x.constants not in ((), constants):
                x = self.stored(x)
            if isinstance(x, Tensor):
                one = sum(n > 1 for n in x.shape) <= 1 and self.constant(x)
                if not one and one != 0 or isinstance(one, tuple) and constants not in ((), one[0]):
                    one = self.constant_value(x, max(getattr(o, "rank", 0) for o in operands.values()))
                x = one
            if isinstance(x, tuple) and not isinstance(x, Terms):
                words[name], constants, axis = "p", *x
            elif isinstance(x, bool) or isinstance(x, (int, float)):
                words[name] = repr(float(x))
            elif isinstance(x, Formula):
                constants, axis = (x.constants, x.axis) if x.constants else (constants, axis)
                first = len(all_steps)
                mine = {f"x{i}": word_of(v) for i, v in enumerate(x.values)}
                mine |= {f"s{i}": f"s{first + i}" for i in range(len(x.steps))}
                all_steps += [" ".join(mine.get(w, w) for w in step.split()) for step in x.steps]
                words[name] = f"s{len(all_steps) - 1}"
                shapes.append(x.shape)
            else:
                x = self.plain(self.tensor(x))
                words[name] = word_of(x)
                shapes.append(x.shape)
        refuse_if(not shapes, "a formula of constants alone")
        refuse_if(len({len(s) for s in shapes}) > 1, f"a formula of tensors of the shapes {set(shapes)}")
        words |= {f"s{i}": f"s{len(all_steps) + i}" for i in range(len(steps))}
        all_steps += [" ".join(words.get(w, w) for w in step.split()) for step in steps]
        refuse_if(len(all_steps) > MOST_STEPS, f"a loss of more than {MOST_STEPS} steps")
        shape = tuple(max(extents) for extents in zip(*shapes))
        return Formula(tuple(all_steps), tuple(values), shape, constants, axis)

    def numbers(self, x, what):
        """Returns the numbers of a tensor that is given with the loss."""
        known = isinstance(x, Tensor) and x.kind in (Kind.buffer, Kind.constant)
        refuse_if(not known, f"{what} that is {x}, and no constant tensor,")
        return self.tensors[x.name].detach().double()

    def constant(self, x):
        """Returns a constant tensor as a number, or its numbers and the axis, counted from the end."""
        numbers = self.numbers(x, "a factor")
        if numbers.numel() == 1:
            return numbers.item()
        long = [axis for axis, extent in enumerate(numbers.shape) if extent > 1]
        refuse_if(len(long) > 1, f"a constant tensor of {tuple(numbers.shape)} (one axis may be above 1)")
        return tuple(numbers.flatten().tolist()), long[0] - numbers.dim()

    def add(self, a, b):
        if 0 in (a, b) and any(is_number(x) for x in (a, b)):
            return b if is_number(a) else a
        return self.formula(["add a b"], a, b)

    def multiply(self, a, b):
        return self.formula(["multiply a b"], a, b)

    # Sums

    def summed(self, x, axes, reduction, keep=False):
        """Returns a sum or a mean over axes; over all where there are none."""
        whole = not axes or set(axes) == set(range(x.rank))
        if whole and isinstance(x, PartialSum):
            return self.terms(x.of, reduction).times(x.extent if reduction == "mean" else 1)
        x = self.as_formula(x)
        if whole:
            return self.terms(x, reduction)
        refuse_if(0 in axes, "a sum over the samples without the other axes")
        extent = math.prod(x.shape[axis] for axis in set(axes))
        if reduction == "mean":
            x = self.one_formula([f"divide a {float(extent)!r}"], {"a": x})
        return PartialSum(x, extent, tuple(set(axes)), keep)

    def terms(self, x, reduction):
        options = {"steps": [*x.steps]}
        if x.constants:
            options |= {"constants": [*x.constants], "constants_axis": x.rank + x.axis}
        if reduction != "mean":
            options["reduction"] = reduction
        return Terms([Term("formula_loss", tuple(v.node for v in x.values), options)])

    def reduced(self, x, reduction):
        """Returns a formula as PyTorch's reduction has it: none, mean or sum, or their numbers."""
        reduction = {0: "none", 1: "mean", 2: "sum"}.get(reduction, reduction)
        return x if reduction == "none" else self.terms(x, reduction)
