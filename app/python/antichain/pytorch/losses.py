"""What a user's loss is of: the losses of torch.nn, and functions of outputs and targets, become loss nodes.

A loss is captured as a module is, and its calls are translated by the same table. What it computes element by
element stays a formula until it is summed, so that a loss is one node: formula_loss, or softmax_cross_entropy
(layers/formula_loss.h, layers/softmax_cross_entropy.h). Sums and means may be added up with weights.
"""

import copy
import dataclasses
import math

import torch

from antichain.error import AntichainError
from antichain.pytorch.calls import Call, Kind, Tensor, map_leaves, map_references, needed, references, replay
from antichain.pytorch.capture import capture, check, copied, told, users_line
from antichain.pytorch.names import readable
from antichain.pytorch.normalise import flat
from antichain.pytorch.operators import FORMULAS, ROWS, is_number, sizes
from antichain.pytorch.refusal import refuse
from antichain.pytorch.translate import Translation
from antichain.translation import Joined, Table, Unsupported, Value, Widened, attempt, natural, refuse_if
from antichain.translation import separated, unknown

MOST_STEPS = 24  # of a formula: ElementwiseProgram
PYTORCHS_IGNORED = -100  # the label that cross_entropy ignores unless it is told another


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
    if name == "multiply" and not both:
        return b.times(a)
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
        if isinstance(x, LogProbabilities):
            return ROWS["log_softmax"](self.of_networks(), x.of, dim=1)
        return x if isinstance(x, (Formula, Terms)) else super().tensor(x, what)

    def stored(self, x):
        """Returns what is computed of a formula by a node of its own."""
        if not isinstance(x, Formula):
            return self.tensor(x)
        options = {"steps": [*x.steps]}
        refuse_if(x.constants, "a constant tensor in what is not summed up at once")
        return self.emit("elementwise", [self.plain(v) for v in x.values], options)

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

    def activate(self, x, function):
        return self.formula(["sigmoid a"], x) if function == "sigmoid" else super().activate(x, function)

    def reshape(self, x, shape, helper=False):
        return super().reshape(self.stored(x), shape, helper)

    def as_formula(self, x):
        if isinstance(x, Formula):
            return x
        x = self.plain(self.tensor(x))
        return Formula(("add x0 0",), (x,), x.shape)

    def formula(self, steps, *operands, channels=False):
        if any(isinstance(x, Terms) for x in operands):
            of = dict(zip("abc", operands))
            for i, step in enumerate(steps):
                of[f"s{i}"] = _linear(step, of)
            return of[f"s{len(steps) - 1}"]
        return self.joined(steps, dict(zip("abc", operands)))

    def joined(self, steps, operands):
        """Returns a formula of operands, which may be formulas, by the names that the steps call them."""
        words, values, all_steps, constants, axis, shapes = {}, [], [], (), -1, []

        def word_of(value):
            if value not in values:
                values.append(value)
            return f"x{values.index(value)}"

        for name, x in operands.items():
            x = x.of if isinstance(x, Widened) else x
            refuse_if(isinstance(x, PartialSum), "a sum over some axes that is computed with further")
            if isinstance(x, Tensor):
                x = self.constant(x)
            if isinstance(x, tuple) and not isinstance(x, Terms):
                refuse_if(constants and constants != x[0], "a formula of two constant tensors")
                words[name], constants, axis = "p", *x
            elif isinstance(x, bool) or isinstance(x, (int, float)):
                words[name] = repr(float(x))
            elif isinstance(x, Formula):
                two = constants and x.constants not in ((), constants)
                refuse_if(two, "a formula of two constant tensors")
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

    def summed(self, x, axes, reduction):
        """Returns a sum or a mean over axes; over all where there are none."""
        partial = x if isinstance(x, PartialSum) else None
        x = partial.of if partial else self.as_formula(x)
        if not axes or set(axes) == set(range(x.rank)):
            factor = partial.extent if partial and reduction == "mean" else 1
            return self.terms(x, reduction).times(factor)
        refuse_if(partial is not None or 0 in axes, "a sum over the samples without the other axes")
        extent = math.prod(x.shape[axis] for axis in set(axes))
        if reduction == "mean":
            x = self.joined([f"divide a {float(extent)!r}"], {"a": x})
        return PartialSum(x, extent)

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


LOSS_ROWS = Table()
LOSS_ROWS.update(ROWS)
# These rows get their first argument as it is.
LOSS_ROWS.raw = set(ROWS.raw)
for _names, _steps in FORMULAS.items():
    LOSS_ROWS.row(_names, raw=True)(lambda t, x, steps=_steps: t.formula(steps, x))


@LOSS_ROWS.row("mean", "mean.dim", raw=True)
def mean(t, x, *dim, axis=None, keepdim=False, dtype=None, **named):
    return summed(t, x, "mean", dim, named.get("dim", axis))


@LOSS_ROWS.row("sum", "sum.dim_IntList", raw=True)
def sum_(t, x, *dim, axis=None, keepdim=False, dtype=None, **named):
    return summed(t, x, "sum", dim, named.get("dim", axis))


def summed(t, x, reduction, dim, named):
    dim = [d for d in dim if not isinstance(d, bool)]
    given = sizes(dim) if dim else named
    given = [] if given is None else given if isinstance(given, (tuple, list)) else [given]
    rank = (x.of if isinstance(x, PartialSum) else x).rank
    return t.summed(x, [int(axis) % rank for axis in given], reduction)


@LOSS_ROWS.row("log_softmax", raw=True)
def log_softmax(t, x, dim=None, _stacklevel=None, dtype=None):
    x = t.plain(x)
    refuse_if(dim is None or t.axis(x, dim) != 1, f"log_softmax over axis {dim}, not the classes'")
    return LogProbabilities(x)


def last_to_second(x):
    """Returns N x K x T … as N x T … x K."""
    return x.permuted((0, *range(2, x.rank), 1))


@LOSS_ROWS.row("cross_entropy", "cross_entropy_loss", raw=True)
def cross_entropy(
    t, x, target, weight=None, size_average=None, ignore_index=PYTORCHS_IGNORED, reduce=None,
    reduction="mean", label_smoothing=0.0,
):
    x = x.of if isinstance(x, LogProbabilities) else x  # log_softmax of log_softmax is the same
    options = {}
    if isinstance(x, Joined) or isinstance(target, Joined):
        axes = {getattr(of, "axes", 0) for of in (x, target)}
        x, target = separated((x, target))
        joined = len(axes) == 1 and axes.pop() == target.rank == x.rank - 1
        refuse_if(not joined, "cross_entropy of positions that are joined otherwise")
        options["classes_last"] = True
    elif isinstance(x, Value) and x.rank > 2 and not x.plain and last_to_second(x).plain:
        x, options["classes_last"] = last_to_second(x), True
    x = t.plain(x)
    reduction = {0: "none", 1: "mean", 2: "sum"}.get(reduction, reduction)
    refuse_if(reduction == "none", "cross_entropy with reduction none")
    refuse_if(getattr(target, "node", "") not in t.is_whole, "cross_entropy of targets that are computed")
    if weight is not None:
        options["class_weights"] = t.numbers(weight, "a weight").tolist()
    if t.is_whole[target.node] and (x.rank > 2 or ignore_index != PYTORCHS_IGNORED):
        options["ignore_index"] = int(ignore_index)
    if label_smoothing:
        options["label_smoothing"] = float(label_smoothing)
    if reduction != "mean":
        options["reduction"] = reduction
    shares = not t.is_whole[target.node]
    refuse_if(shares and x.rank > 2, "cross_entropy of shares of classes for each position")
    return Terms([Term("softmax_cross_entropy", (x.node, target.node), options)])


@LOSS_ROWS.row("nll_loss", "nll_loss_nd", "nll_loss2d", raw=True)
def nll_loss(
    t, x, target, weight=None, size_average=None, ignore_index=PYTORCHS_IGNORED, reduce=None, reduction="mean"
):
    refuse_if(not isinstance(x, LogProbabilities), "nll_loss of anything but a log_softmax over the classes")
    return cross_entropy(t, x, target, weight, ignore_index=ignore_index, reduction=reduction)


@LOSS_ROWS.row("broadcast_tensors", raw=True)
def broadcast_tensors(t, tensors, *more):
    return tuple(tensors) if isinstance(tensors, (tuple, list)) else (tensors, *more)


# Losses of two tensors, element by element: steps of a (the output), b (the target) and c (a number).
SQUARES = ["subtract a b", "multiply s0 s0"]
ABSOLUTE = ["subtract a b", "abs s0"]


@LOSS_ROWS.row("mse_loss", raw=True)
def mse_loss(t, x, target, size_average=None, reduce=None, reduction="mean", weight=None):
    refuse_if(weight is not None, "mse_loss with a weight")
    return t.reduced(t.formula(SQUARES, x, target), reduction)


@LOSS_ROWS.row("l1_loss", raw=True)
def l1_loss(t, x, target, size_average=None, reduce=None, reduction="mean", weight=None):
    refuse_if(weight is not None, "l1_loss with a weight")
    return t.reduced(t.formula(ABSOLUTE, x, target), reduction)


@LOSS_ROWS.row("huber_loss", raw=True)
def huber_loss(t, x, target, reduction="mean", delta=1.0, weight=None):
    refuse_if(weight is not None, "huber_loss with a weight")
    near = f"clamp s0 {-float(delta)!r} {float(delta)!r}"
    steps = ["subtract a b", near, "multiply s1 0.5", "subtract s0 s2", "multiply s1 s3"]
    return t.reduced(t.formula(steps, x, target), reduction)


@LOSS_ROWS.row("smooth_l1_loss", raw=True)
def smooth_l1_loss(t, x, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    if beta == 0:
        return l1_loss(t, x, target, reduction=reduction)
    huber = huber_loss(t, x, target, "none", beta)
    return t.reduced(t.formula(["divide a b"], huber, float(beta)), reduction)


@LOSS_ROWS.row("binary_cross_entropy_with_logits", raw=True)
def binary_cross_entropy_with_logits(
    t, x, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    refuse_if(weight is not None, "binary_cross_entropy_with_logits with a weight")
    steps = ["subtract 1 b", "multiply s0 a", "negate a", "softplus s2"]
    if pos_weight is None:
        return t.reduced(t.formula([*steps, "add s1 s3"], x, target), reduction)
    more = ["subtract c 1", "multiply s4 b", "add s5 1", "multiply s6 s3", "add s1 s7"]
    return t.reduced(t.formula([*steps, *more], x, target, pos_weight), reduction)


@LOSS_ROWS.row("kl_div", raw=True)
def kl_div(t, x, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    steps = ["log b", "subtract s0 a", "multiply b s1", "greater b 0", "where s3 s2 0"]
    if log_target:
        steps = ["exp b", "subtract b a", "multiply s0 s1"]
    all_of = t.formula(steps, x, target)
    if reduction == "batchmean":
        return t.terms(all_of, "mean_of_samples")
    return t.reduced(all_of, reduction)


# What is captured of a loss, and what it becomes


class Whole(torch.nn.Module):
    """The user's losses of what a model returns and of the targets, as one module of tensors."""

    def __init__(self, losses, structure, targets):
        super().__init__()
        self.modules_of_losses = torch.nn.ModuleList(l for l, _ in losses if isinstance(l, torch.nn.Module))
        modules = iter(range(len(losses)))
        self.losses = [next(modules) if isinstance(l, torch.nn.Module) else l for l, _ in losses]
        self.weights = [weight for _, weight in losses]
        self.structure, self.targets = structure, targets

    def forward(self, *tensors):
        count = len(flat(self.structure))
        outputs, targets = list(tensors[:count]), list(tensors[count:])
        given = iter(outputs)
        in_place = lambda leaf: next(given) if isinstance(leaf, torch.Tensor) else leaf
        output = map_leaves(in_place, self.structure)
        losses = [self.modules_of_losses[l] if isinstance(l, int) else l for l in self.losses]
        if len(losses) == 1:
            return self.weights[0] * losses[0](output, targets[0] if len(targets) == 1 else targets)
        return sum(w * loss(o, y) for w, loss, o, y in zip(self.weights, losses, outputs, targets))


def losses_of(loss):
    """Returns the user's losses with their weights."""
    every = loss if isinstance(loss, (list, tuple)) else [loss]
    pairs = [entry if isinstance(entry, (list, tuple)) else (entry, 1.0) for entry in every]
    functions = {"cross_entropy": torch.nn.functional.cross_entropy, "nll_loss": torch.nn.functional.nll_loss}
    pairs = [(functions.get(l, l) if isinstance(l, str) else l, weight) for l, weight in pairs]
    for function, weight in pairs:
        if not callable(function) or not is_number(weight):
            raise AntichainError(
                f"the loss {function!r} is not supported; give \"cross_entropy\", \"nll_loss\", a loss of "
                "torch.nn, a function of output and target, or a list of these, each alone or with a weight"
            )
    return pairs


def targets_of(labels, losses, outputs):
    """Returns the targets by their names as inputs of the network: int64, or float32. Cross-entropy of one
    label has classes in turn where none are given."""
    samples, of_classes = len(outputs[0]), (torch.nn.CrossEntropyLoss, torch.nn.NLLLoss)
    if labels is None and isinstance(losses[0][0], of_classes) and outputs[0].dim() == 2:
        labels = torch.arange(samples) % outputs[0].shape[1]
    if labels is None:
        raise AntichainError("this loss needs labels: give the targets of example_inputs")
    named = labels if isinstance(labels, dict) else None
    if isinstance(labels, (list, tuple)) and all(isinstance(l, torch.Tensor) for l in labels):
        named = {f"labels{i}": tensor for i, tensor in enumerate(labels)}
    targets = {}
    for name, tensor in (named or {"labels": labels}).items():
        with told("labels are tensors, one for each target"):
            tensor = torch.as_tensor(tensor).detach().cpu()
        if tensor.dim() < 1 or tensor.shape[0] != samples:
            has = tuple(tensor.shape)
            raise AntichainError(f"{name} have the shape {has}, but there are {samples} samples")
        if tensor.is_complex() or not tensor.isfinite().all():
            raise AntichainError(f"{name} have numbers that are complex or not finite")
        targets[name] = tensor.float() if tensor.is_floating_point() else tensor.long()
        if not tensor.is_floating_point() and tensor.numel() and targets[name].abs().max() >= 2**31:
            raise AntichainError(f"{name} have whole numbers above 32 bits")
    return targets


class Objective:
    """The user's losses of one model, as they are and as they were read."""

    def __init__(self, module, inputs, loss, labels):
        losses = losses_of(loss)
        with torch.random.fork_rng(devices=[]), told("the model can't run", users_line):
            structure = copied(module)(*(x.clone() for x in inputs.values()))
        outputs = [tensor.detach() for tensor in flat(structure)]
        if not outputs or not all(tensor.dim() for tensor in outputs):
            raise AntichainError("the model returns no tensor, or one without samples")
        self.targets = targets_of(labels, losses, outputs)
        if len(losses) > 1 and len(losses) != min(len(outputs), len(self.targets)):
            raise AntichainError(
                f"{len(losses)} losses are given for {len(outputs)} outputs and {len(self.targets)} labels: "
                "give one of each, or one function of all"
            )
        structure = map_leaves(lambda x: x.detach() if isinstance(x, torch.Tensor) else x, structure)
        self.whole = Whole(losses, structure, [*self.targets])
        examples = {f"output.{i}": tensor for i, tensor in enumerate(outputs)} | self.targets
        with told("the loss can't be computed", users_line):
            value = self.whole(*(x.clone() for x in examples.values()))
        if not isinstance(value, torch.Tensor) or value.dim():
            raise AntichainError("a loss is one number for the batch; sum it up, or take the mean")
        self.captured, copy = capture(self.whole, examples)
        check(copy, self.captured, examples)
        self.calls = needed(self.captured.calls, self.captured.outputs)
        used = {r.name for call in self.calls for r in references(call) if isinstance(r, Tensor)}
        self.used = [i for i in range(len(outputs)) if f"output.{i}" in used]  # of the model's outputs
        unused = [name for name in self.targets if name not in used]
        if not self.used or unused:
            raise AntichainError(f"the loss does not use {', '.join(unused) or 'what the model returns'}")

    def own(self, dtype):
        """Returns the user's own losses as a function of the model's outputs and the targets."""
        whole = copied(self.whole).to(dtype)
        return lambda outputs, targets: whole(*outputs, *targets.values())

    def read(self, dtype):
        """Returns what was read of them, of the outputs that they use."""
        tensors = self.captured.tensors.items()
        tensors = {name: t.to(dtype) if t.is_floating_point() else t for name, t in tensors}

        def loss_of(outputs, targets):
            inputs = {f"output.{i}": output for i, output in zip(self.used, outputs)} | targets
            for call, value in replay(self.calls, tensors, inputs):
                if call is self.captured.outputs[0]:
                    result = value
            return result

        return loss_of

    def entries(self, t, values):
        """Returns the name, the operator, the inputs and the options of each loss node, and enters the nodes
        in front of them in the translation t, of which the values are the outputs that are used."""
        losses = LossTranslation(t.batch, t.names, self.captured.tensors)
        losses.plain_forms, losses.source = t.plain_forms, t.source
        losses.is_whole = {name: not y.is_floating_point() for name, y in self.targets.items()}
        given = {f"output.{i}": value for i, value in zip(self.used, values)}
        for name, target in self.targets.items():
            given[name] = Value(name, tuple(target.shape), natural(target.dim()))
        known = {}

        def value_of(r):
            if isinstance(r, Call):
                return known[id(r)]
            return given[r.name] if r.kind is Kind.input else r

        def make(call):
            losses.call = call
            refuse_if(any(isinstance(r, Call) and id(r) not in known for r in references(call)), "")
            known[id(call)] = LOSS_ROWS.make(
                losses, call.key, *map_references(value_of, (call.args, call.kwargs))
            )

        def stand_in(call):
            if call.shape:
                known[id(call)] = unknown(call.shape)

        for call in self.calls:
            call.name = t.names.unique(readable(f"loss.{call.key}"))
        problems = attempt(self.calls, make, stand_in)
        refuse([], problems, self.calls, ["sums and means of formulas", "cross_entropy", "nll_loss"])
        terms = known[id(self.captured.outputs[0])]
        if not isinstance(terms, Terms):
            raise AntichainError("the loss is no sum or mean over all samples")
        t.nodes += losses.nodes
        terms = sorted(terms, key=lambda term: term.op != "softmax_cross_entropy")
        names = ["loss", *(t.names.unique(f"loss.term{i}") for i in range(1, len(terms)))]
        for name, term in zip(names, terms):
            weight = {"weight": term.weight} if term.weight != 1 else {}
            yield name, term.op, [*term.inputs], {**term.options, **weight}
