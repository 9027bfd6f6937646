"""Writes a PyTorch model as a folder NAME.antichain; docs/bring-your-model.md has the format and an
example."""

import dataclasses
import re

import torch

from antichain import folder as files
from antichain.error import AntichainError
from antichain.folder import graph_text
from antichain.graph_operators import MOST_AXES, WHOLE
from antichain.pytorch.calls import Call, needed
from antichain.pytorch.capture import capture, check, copied, told
from antichain.pytorch.inputs import example_call, network_inputs, taking_tensors
from antichain.pytorch.losses import LogProbabilities, Objective
from antichain.pytorch.module_state import frozen, what_is_not_done
from antichain.pytorch.names import name_calls
from antichain.pytorch.normalise import flat
from antichain.pytorch.operators import OPERATORS, ROWS
from antichain.pytorch.record import Training, record
from antichain.pytorch.refusal import check_module, checked_number, refuse
from antichain.pytorch.same import check_same
from antichain.pytorch.translate import translate
from antichain.translation import Joined, Repeated, Value, Widened

RESERVED = ("images", "labels", "loss")
MOST_EXACT = 2**24  # whole numbers that float32 has


@dataclasses.dataclass(frozen=True)
class Loss:
    name: str
    weight: float = 1.0
    label_smoothing: float = 0.0


def is_of_one_label(module, inputs, loss, labels):
    """Says whether a loss is the cross-entropy of one label for each sample, without classes that count
    differently."""
    if isinstance(loss, torch.nn.CrossEntropyLoss):
        usual = loss.weight is None and loss.reduction == "mean" and loss.ignore_index == -100
        if type(loss) is not torch.nn.CrossEntropyLoss or not usual:
            return False
    elif not isinstance(loss, str) or loss not in ("cross_entropy", "nll_loss"):
        return False
    if isinstance(labels, dict):  # which have names of their own
        return False
    try:
        with torch.random.fork_rng(devices=[]):
            return flat(copied(module)(*(x.clone() for x in inputs.values())))[0].dim() == 2 or labels is None
    except Exception:  # which says more when the model is captured
        return True


def label_smoothing_of(loss):
    """Returns the label smoothing of a loss that is one of one label. Throws AntichainError where that is
    no share."""
    if isinstance(loss, str):
        return 0.0
    smoothing = loss.label_smoothing
    if isinstance(smoothing, str) or not 0 <= smoothing < 1:
        raise AntichainError(f"label_smoothing is from 0 to below 1, not {smoothing!r}")
    if any(hooks for kind, hooks in vars(loss).items() if kind.endswith(("ward_hooks", "ward_pre_hooks"))):
        raise AntichainError("the loss has hooks, which are not supported (remove them)")
    return float(smoothing)


def loss_function(loss):
    """Returns the user's own loss as a function of the model's output and labels."""
    if isinstance(loss, torch.nn.Module):
        return loss

    def nll_loss(output, labels):
        if labels.is_floating_point():
            return -(labels * output).sum(1).mean()
        return torch.nn.functional.nll_loss(output, labels)

    return nll_loss if loss == "nll_loss" else torch.nn.functional.cross_entropy


def logits_of(output, loss):
    """Returns what cross-entropy is taken of: the input of a last log_softmax, which is a part of the
    loss."""
    if isinstance(output, Call) and output.key == "log_softmax":
        dim = {**output.kwargs, **dict(zip(("dim",), output.args[1:]))}.get("dim")
        if dim not in (1, -1):
            raise AntichainError(
                f"the log_softmax at the end ({output.where}) is over axis {dim}, not the classes'"
            )
        return output.args[0]
    if loss == "nll_loss":
        raise AntichainError("nll_loss needs a model that ends with a log_softmax")
    if not isinstance(output, Call):
        raise AntichainError("the model returns a tensor that it does not compute")
    return output


def checked_labels(labels, batch, classes):
    if labels is None:
        return torch.arange(batch) % classes
    with told("labels are numbers of classes, or shares of them"):
        labels = torch.as_tensor(labels).detach().cpu()
    shares = labels.is_floating_point()
    shape, given = (batch, classes) if shares else (batch,), tuple(labels.shape)
    if given != shape:
        why = f"have the shape {given}, but {batch} samples of {classes} classes have {shape}"
    elif shares:
        if labels.isfinite().all() and labels.min() >= 0:
            return labels.float()
        why = "have shares that are negative or not finite"
    else:
        if not labels.is_complex() and 0 <= int(labels.min()) <= int(labels.max()) < classes:
            return labels.long()
        why = f"lie between 0 and {classes - 1}, not between {labels.min()} and {labels.max()}"
    raise AntichainError(f"labels {why}")


def read(module, examples, pick, reserved, clauses=(), training=True):
    """Returns what is captured of a module, the copy of it that ran, the Translation, and the values that
    losses are taken of: `pick` returns these calls of a Captured. Throws AntichainError, which begins with
    the clauses, where something is not supported.
    """
    clauses = [*clauses]
    try:
        whole, copy = capture(module, examples, training)
    except AntichainError:
        refuse(clauses)
        raise
    for call in whole.calls:
        if call.key == "batch_norm" and not training:  # the mode alone is what differs
            call.kwargs["training"] = True
    outputs = pick(whole)
    captured = dataclasses.replace(whole, calls=needed(whole.calls, outputs), outputs=outputs)
    name_calls(captured.calls, reserved)
    t, values, problems = translate(captured, examples, reserved, ROWS)
    refuse(clauses, problems, OPERATORS)
    for i, value in enumerate(values):
        if not isinstance(value, (Joined, Repeated, Value, Widened)):
            raise AntichainError(f"the model returns {value}, which is nothing that it computes")
        if not isinstance(value, Joined):
            values[i] = t.plain(t.tensor(value))
    return whole, copy, t, values


def pick_logits(loss, auxiliary):
    """Returns what picks the logits of a cross-entropy of one label."""

    def pick(whole):
        if auxiliary and len(whole.outputs) == 1:
            what = "auxiliary is the weight of the loss of each further output"
            raise AntichainError(f"{what}, but the model has one output")
        return [logits_of(output, loss) for output in whole.outputs[: None if auxiliary else 1]]

    return pick


def check_logits(logits):
    for value in logits:
        if value.rank != 2:
            raise AntichainError(
                f"the model's output has the shape {value.shape}, but cross-entropy takes one number for "
                "each class, N x K; give labels for a loss of each position"
            )
        if value.shape[1] < 2:
            raise AntichainError("the model has one class, but cross-entropy takes two at least")


def stored_numbers(name, tensor, computed_with=True):
    """Returns what weights.safetensors has of a tensor of the state_dict: float32, or an int64 scalar. Those
    of one that no node has may be infinite, as a mask's are."""
    if not isinstance(tensor, torch.Tensor):
        raise AntichainError(f"{name} of the state_dict is no tensor, so a file of weights can't hold it")
    parts = name.split("/")
    if not name.isprintable() or (len(parts) > 1 and not set(parts).isdisjoint(("", ".", ".."))):
        raise AntichainError(f"the name {name!r} can't stand in a file of weights; rename the module")
    odd = tensor.is_complex() or tensor.is_quantized or tensor.layout is not torch.strided
    if odd or tensor.dim() > MOST_AXES:
        kind = f"{tensor.dtype} of {tensor.dim()} axes"
        raise AntichainError(f"{name} of the state_dict is {kind}, which a file of weights can't hold")
    if tensor.is_floating_point():
        if computed_with and not tensor.isfinite().all():
            raise AntichainError(f"{name} has numbers that are not finite (NaN or infinity)")
        return tensor.detach().cpu().float().numpy()
    whole = tensor.detach().cpu().long()
    if tensor.dim() and tensor.numel() and whole.abs().max() > MOST_EXACT:
        sentence = f"{name} has whole numbers above {MOST_EXACT}, which a file of weights can't hold"
        raise AntichainError(sentence)
    return whole.float().numpy() if tensor.dim() else whole.numpy()


def stored_state(module, t):
    """Returns the arrays of weights.safetensors by their names in the state_dict, and what graph.json has to
    say of them: names that differ from those of its nodes, and tensors that no node has, which are kept as
    they are.
    """
    state = module.state_dict()
    arrays = {name: stored_numbers(name, tensor, name in t.state) for name, tensor in state.items()}
    own = dict([*module.named_parameters(), *module.named_buffers()])
    for name in t.state:
        if name not in state or not torch.equal(state[name].to(own[name]), own[name]):
            raise AntichainError(
                f"the network's {name} is not in the module's state_dict, or has other numbers there, so "
                "what is trained could not be taken back (is it a buffer with persistent=False?)"
            )
    first = {id(tensor): name for name, tensor in reversed([*module.state_dict(keep_vars=True).items()])}
    again = {n: first[id(p)] for n, p in module.state_dict(keep_vars=True).items() if first[id(p)] in t.state}
    again = {name: t.state[of] for name, of in again.items() if name not in t.state}
    kept = {name: array for name, array in arrays.items() if name not in {*t.state, *again}}
    notes = [{"name": name, "is": own} for name, own in t.state.items() if own != name]
    notes += [{"name": name, "also": own} for name, own in again.items()]
    notes += [{"name": n, "shape": list(a.shape), "dtype": str(a.dtype)} for n, a in kept.items()]
    return {name: arrays[name] for name in (*t.state, *again, *kept)}, notes


def type_of(name, tensor, nodes):
    """Returns the type of a network's input: int32 where a node takes whole numbers of it; those that compute
    with it get these as float32. Throws AntichainError where nothing uses it."""
    takers = [n for n in nodes if n["op"] != "constant"]  # which reads the number of samples alone
    uses = [i in WHOLE.get(n["op"], ()) for n in takers for i, of in enumerate(n["inputs"]) if of == name]
    if not uses:
        raise AntichainError(f"what the model returns does not depend on the input {name}")
    if not all(uses) and not tensor.is_floating_point() and tensor.long().abs().max() > MOST_EXACT:
        raise AntichainError(f"{name} has whole numbers above {MOST_EXACT}, which float32 does not have")
    return "int32" if any(uses) and not tensor.is_floating_point() else "float32"


def graph_json(name, made_by, t, examples, targets, losses, notes, not_trained):
    """`losses` are nodes as dictionaries, the model's own first."""

    def entry(name, op, inputs, options):
        return {"name": name, "op": op, "inputs": inputs, **({"options": options} if options else {})}

    nodes = [
        {
            **entry(n.name, n.op, n.inputs, n.options),
            **({"shared": n.shared} if n.shared else {}),
            "from": str(n.where),
        }
        for n in t.nodes
    ]
    nodes += reversed([entry(*loss) for loss in losses])  # the model's own loss comes last
    inputs = [
        {"name": n, "shape": [*x.shape[1:]], "dtype": type_of(n, x, nodes), **mark}
        for given, mark in ((examples, {}), (targets, {"target": True})) for n, x in given.items()
    ]
    return graph_text(name, made_by, inputs, nodes, notes, not_trained)


def model_name(module):
    """Returns a name that can be a part of a file's: the class's."""
    return re.sub(r"[^A-Za-z0-9_]", "_", type(module).__name__)[:64]


def write_folder(*given):
    """Does what antichain.from_torch says."""
    with torch.inference_mode(False), torch.enable_grad(), torch.random.fork_rng(devices=[]):
        return written(*given)


@dataclasses.dataclass
class OneLabel:
    """The cross-entropy of one label for each sample, of the model's output and of auxiliary ones."""

    loss: object  # the user's
    losses: list
    targets: dict

    def own(self, dtype):
        function = loss_function(self.loss)
        return self.sum_of(lambda loss, output, labels: function(output, labels))

    def read(self, dtype):
        def cross_entropy(loss, output, labels):  # a log_softmax of a log_softmax is the same
            return torch.nn.functional.cross_entropy(output, labels, label_smoothing=loss.label_smoothing)

        return self.sum_of(cross_entropy)

    def sum_of(self, loss_of):
        return lambda outputs, targets: sum(
            loss.weight * loss_of(loss, output, targets["labels"])
            for output, loss in zip(outputs, self.losses)
        )

    def entries(self, logits):
        for loss, value in zip(self.losses, logits):
            options = {"label_smoothing": loss.label_smoothing, "weight": loss.weight}
            options = {key: value for key, value in options.items() if value != getattr(Loss, key)}
            yield loss.name, "softmax_cross_entropy", [value.node, "labels"], options


def without_log_softmax(output):
    """Returns a model's output, or what its last log_softmax is taken of; that is a part of the loss."""
    is_log_softmax = isinstance(output, Call) and output.key == "log_softmax"
    return logits_of(output, None) if is_log_softmax else output


def written(module, example_inputs, loss, folder, labels, auxiliary, with_record):
    check_module(module)
    auxiliary = checked_number("auxiliary", auxiliary)
    called_with = example_call(example_inputs)
    given = [*labels] if isinstance(labels, dict) else []
    examples = network_inputs(module, *called_with, ("labels", "loss", *given))
    module = taking_tensors(module, *called_with)
    one_label = is_of_one_label(module, examples, loss, labels)
    smoothing = label_smoothing_of(loss) if one_label else 0
    clauses = what_is_not_done(module)
    if one_label:
        reserved, pick = (*RESERVED, *examples), pick_logits
    else:
        if auxiliary:
            raise AntichainError("auxiliary is for cross-entropy of one label; give a list of losses")
        objective = Objective(module, examples, loss, labels)
        reserved = (*RESERVED, *examples, *objective.targets)

        def pick(*_):
            return lambda whole: [without_log_softmax(whole.outputs[i]) for i in objective.used]

    whole, copy, t, values = read(module, examples, pick(loss, auxiliary), reserved, clauses)
    not_trained = frozen(copy, t.parameters)
    if one_label:
        check_logits(values)
        losses = [Loss("loss", label_smoothing=smoothing)] + [
            Loss(t.names.unique(f"loss.auxiliary{i}"), auxiliary, smoothing) for i in range(1, len(values))
        ]
        labels = checked_labels(labels, t.batch, values[0].shape[1])
        objective, outputs = OneLabel(loss, losses, {"labels": labels}), whole.outputs[: len(losses)]
    else:
        outputs = [whole.outputs[i] for i in objective.used]
    check(copy, whole, examples)

    def read_again(net, x, training):
        return read(net, x, pick(loss, training and auxiliary), reserved, training=training)[2:]

    check_same(module, copy, examples, (t, values), read_again)
    arrays, notes = stored_state(module, t)
    if one_label:
        entries = [*objective.entries(values)]
    else:
        stripped = [without_log_softmax(output) is not output for output in outputs]
        entries = [*objective.entries(t, [LogProbabilities(v) if s else v for v, s in zip(values, stripped)])]
    training = Training(module, dataclasses.replace(whole, outputs=outputs), objective, examples)
    numbers = record(training, t.nodes, t.state) if with_record else training.compare(1)

    name = model_name(module)
    text = graph_json(name, whole.made_by, t, examples, objective.targets, entries, notes, not_trained)
    folder = f"{name}.antichain" if folder is None else folder
    return files.write_folder(folder, text, arrays, numbers if with_record else None)
