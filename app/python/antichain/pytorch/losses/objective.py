"""The user's losses of one model: how they are captured, and which loss nodes they become."""

import copy
import dataclasses
import math

import torch

from antichain.error import AntichainError
from antichain.pytorch.calls import Call, Kind, Tensor, map_leaves, map_references, needed, references, replay
from antichain.pytorch.capture import capture, check, copied, told, users_line
from antichain.pytorch.losses.formulas import LogProbabilities, LossTranslation, Terms
from antichain.pytorch.losses.rows import LOSS_ROWS
from antichain.pytorch.names import readable
from antichain.pytorch.normalise import flat
from antichain.pytorch.operators.table import is_number
from antichain.pytorch.refusal import refuse
from antichain.translation import Joined, Value, attempt, natural, refuse_if, unknown


class Whole(torch.nn.Module):
    """The user's losses of what a model returns and of the targets, as one module of tensors."""

    def __init__(self, losses, structure, targets, named):
        super().__init__()
        self.modules_of_losses = torch.nn.ModuleList(l for l, _ in losses if isinstance(l, torch.nn.Module))
        modules = iter(range(len(losses)))
        self.losses = [next(modules) if isinstance(l, torch.nn.Module) else l for l, _ in losses]
        self.weights = [weight for _, weight in losses]
        self.structure, self.targets, self.named = structure, targets, named

    def forward(self, *tensors):
        count = len(flat(self.structure))
        outputs, targets = list(tensors[:count]), list(tensors[count:])
        given = iter(outputs)
        in_place = lambda leaf: next(given) if isinstance(leaf, torch.Tensor) else leaf
        output = map_leaves(in_place, self.structure)
        losses = [self.modules_of_losses[l] if isinstance(l, int) else l for l in self.losses]
        if len(losses) == 1:
            given = dict(zip(self.targets, targets)) if self.named else targets
            return self.weights[0] * losses[0](output, targets[0] if len(targets) == 1 else given)
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


def targets_of(labels, losses, outputs, samples):
    """Returns the targets by their names as inputs of the network: int64, or float32. Cross-entropy of one
    label has classes in turn where none are given."""
    of_classes = (torch.nn.CrossEntropyLoss, torch.nn.NLLLoss)
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


def what_it_is(node):
    """Returns what a node computes, beside its place in the code."""
    return node.name, node.op, node.inputs, node.options, node.shared


def of_any_number(samples, one, two):
    """Returns the term of a loss on any number of samples, of which these are the terms on so many and on
    twice as many. A sum that is divided by the number of samples is a mean."""
    if one == two:
        return one
    mean = {"formula_loss": {"reduction": "mean_of_samples"}, "softmax_cross_entropy": {}}[one.op]
    counts = {"class_weights", "ignore_index"} & one.options.keys()
    halved = dataclasses.replace(two, weight=one.weight) == one and math.isclose(one.weight, 2 * two.weight)
    if counts or not halved or one.options.get("reduction") != "sum":
        numbers = f"{one.weight:g} and then {two.weight:g} times the {one.options.get('reduction', 'mean')}"
        raise AntichainError(f"it has {numbers} of a {one.op}; take a mean or a sum as it is")
    rest = {name: value for name, value in one.options.items() if name != "reduction"}
    return dataclasses.replace(one, options={**rest, **mean}, weight=one.weight * samples)


class Objective:
    """The user's losses of one model, as they are and as they were read."""

    def __init__(self, module, inputs, loss, labels):
        losses = losses_of(loss)
        with torch.random.fork_rng(devices=[]), told("the model can't run", users_line):
            structure = copied(module)(*(x.clone() for x in inputs.values()))
        outputs = [tensor.detach() for tensor in flat(structure)]
        if not outputs or not all(tensor.dim() for tensor in outputs):
            raise AntichainError("the model returns no tensor, or one without samples")
        own = [name for f, _ in losses if isinstance(f, torch.nn.Module) for name, _ in f.named_parameters()]
        if own:
            raise AntichainError(
                f"the loss has parameters ({', '.join(own)}), which are not trained; make them parameters of "
                "the model, which returns them as an output of its own, expanded to the samples"
            )
        self.targets = targets_of(labels, losses, outputs, len(next(iter(inputs.values()))))
        if len(losses) > 1 and len(losses) != min(len(outputs), len(self.targets)):
            raise AntichainError(
                f"{len(losses)} losses are given for {len(outputs)} outputs and {len(self.targets)} labels: "
                "give one of each, or one function of all"
            )
        structure = map_leaves(lambda x: x.detach() if isinstance(x, torch.Tensor) else x, structure)
        self.whole = Whole(losses, structure, [*self.targets], isinstance(labels, dict))
        examples = {f"output.{i}": tensor for i, tensor in enumerate(outputs)} | self.targets
        with told("the loss can't be computed", users_line):
            value = self.whole(*(x.clone() for x in examples.values()))
        if not isinstance(value, torch.Tensor) or value.dim():
            raise AntichainError("a loss is one number for the batch; sum it up, or take the mean")
        self.examples = examples
        self.captured, used = capture(self.whole, examples)
        check(used, self.captured, examples)
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

    def translated(self, t, values, names, times=1):
        """Returns the nodes and the terms that the losses become behind those of the translation t, of which
        the values are the outputs that are used, on the samples and on as many again."""

        def more(x):
            if isinstance(x, Value) and times > 1:
                return dataclasses.replace(x, stored=(times * x.stored[0], *x.stored[1:]))
            return dataclasses.replace(x, of=more(x.of)) if isinstance(x, (Joined, LogProbabilities)) else x

        captured, calls = self.captured, self.calls
        if times > 1:
            captured, _ = capture(self.whole, {n: torch.cat([x] * times) for n, x in self.examples.items()})
            calls = needed(captured.calls, captured.outputs)
        losses = LossTranslation(times * t.batch, names, captured.tensors)
        losses.plain_forms, losses.source = {**t.plain_forms}, more(t.source)
        losses.is_whole = {name: not y.is_floating_point() for name, y in self.targets.items()}
        given = {f"output.{i}": more(value) for i, value in zip(self.used, values)}
        for name, target in self.targets.items():
            given[name] = more(Value(name, tuple(target.shape), natural(target.dim())))
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

        for call in calls:
            call.name = names.unique(readable(f"loss.{call.key}"))
        problems = attempt(calls, make, stand_in)
        refuse([], problems, ["sums and means of formulas", "cross_entropy", "nll_loss"])
        terms = known[id(captured.outputs[0])]
        if not isinstance(terms, Terms):
            raise AntichainError("the loss is no sum or mean over all samples")
        return losses.nodes, terms

    def entries(self, t, values):
        """Returns the name, the operator, the inputs and the options of each loss node, and enters the nodes
        in front of them in the translation t, of which the values are the outputs that are used."""
        names = copy.deepcopy(t.names)
        nodes, terms = self.translated(t, values, t.names)
        try:
            twice, others = self.translated(t, values, names, 2)
            if len(terms) != len(others) or [*map(what_it_is, nodes)] != [*map(what_it_is, twice)]:
                raise AntichainError("it has other nodes")
            terms = [of_any_number(t.batch, *pair) for pair in zip(terms, others)]
        except AntichainError as problem:
            than = f"on {2 * t.batch} samples than on {t.batch}"
            raise AntichainError(f"the loss computes something else {than}: {problem}") from problem
        t.nodes += nodes
        terms = sorted(terms, key=lambda term: term.op != "softmax_cross_entropy")
        names = ["loss", *(t.names.unique(f"loss.term{i}") for i in range(1, len(terms)))]
        for name, term in zip(names, terms):
            weight = {"weight": term.weight} if term.weight != 1 else {}
            yield name, term.op, [*term.inputs], {**term.options, **weight}
