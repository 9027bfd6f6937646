"""Writes a PyTorch model as a folder NAME.antichain; docs/bring-your-model.md has the format and an
example."""

import dataclasses
import re

import torch

from antichain import folder as files
from antichain.error import AntichainError
from antichain.folder import graph_text
from antichain.pytorch.calls import Call, needed
from antichain.pytorch.capture import capture, check, example_images, said
from antichain.pytorch.module_state import frozen, what_is_not_done
from antichain.pytorch.names import name_calls
from antichain.pytorch.operators import OPERATORS, ROWS
from antichain.pytorch.record import Training, record
from antichain.pytorch.refusal import check_module, checked_number, refuse
from antichain.pytorch.same import check_same
from antichain.pytorch.translate import translate
from antichain.translation import Value

RESERVED = ("images", "labels", "loss")
MOST_EXACT = 2**24  # whole numbers that float32 has


@dataclasses.dataclass(frozen=True)
class Loss:
    name: str
    weight: float = 1.0
    label_smoothing: float = 0.0


def label_smoothing_of(loss):
    """Returns the label smoothing of a loss. Throws AntichainError where it has another option, or is none of
    those that are supported."""
    if isinstance(loss, str) and loss in ("cross_entropy", "nll_loss"):
        return 0.0
    if type(loss) is not torch.nn.CrossEntropyLoss:
        raise AntichainError(
            f'the loss {loss!r} is not supported; choose "cross_entropy", "nll_loss" behind a '
            "log_softmax, or a torch.nn.CrossEntropyLoss"
        )
    usual = {"weight": None, "reduction": "mean", "ignore_index": -100}
    for option, value in usual.items():
        given = getattr(loss, option)
        if given is not value and (value is None or given != value):
            shown = "…" if isinstance(given, torch.Tensor) else repr(given)
            raise AntichainError(
                f"a CrossEntropyLoss with {option}={shown} is not supported: it has no weights for classes, "
                "ignores no label and takes the mean of a batch"
            )
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
    try:
        labels = torch.as_tensor(labels).detach().cpu()
    except Exception as problem:
        raise AntichainError(
            f"labels are numbers of classes, or shares of them: {said(problem)}"
        ) from problem
    shape = (batch, classes) if labels.is_floating_point() else (batch,)
    if tuple(labels.shape) != shape:
        raise AntichainError(
            f"labels have the shape {tuple(labels.shape)}, but {batch} samples of {classes} classes have "
            f"{shape}"
        )
    if labels.is_floating_point():
        if not labels.isfinite().all() or labels.min() < 0:
            raise AntichainError("labels have shares that are negative or not finite")
        return labels.float()
    if labels.is_complex() or not 0 <= int(labels.min()) <= int(labels.max()) < classes:
        raise AntichainError(
            f"labels lie between 0 and {classes - 1}, not between {labels.min()} and {labels.max()}"
        )
    return labels.long()


def read(module, images, loss, auxiliary, clauses=(), training=True):
    """Returns what is captured of a module, the copy of it that ran, the Translation, and the values that
    losses are taken of. Throws AntichainError, which begins with the clauses, where something is not
    supported.
    """
    clauses = [*clauses]
    try:
        whole, copy = capture(module, {"images": images}, training)
    except AntichainError:
        refuse(clauses)
        raise
    if auxiliary and len(whole.outputs) == 1:
        raise AntichainError(
            "auxiliary is the weight of the loss of each further output, but the model has one output"
        )
    for call in whole.calls:
        if call.key == "batch_norm" and not training:  # the mode alone is what differs
            call.kwargs["training"] = True
    outputs = [logits_of(output, loss) for output in whole.outputs[: None if auxiliary else 1]]
    captured = dataclasses.replace(whole, calls=needed(whole.calls, outputs), outputs=outputs)
    name_calls(captured.calls, RESERVED, clauses)
    t, logits, problems = translate(captured, RESERVED, ROWS)
    refuse(clauses + frozen(copy, t.parameters), problems, captured.calls, OPERATORS)
    for i, value in enumerate(logits):
        if not isinstance(value, Value) or value.rank != 2:
            raise AntichainError(
                f"the model's output has the shape {getattr(value, 'shape', None)}, but cross-entropy "
                "takes one number for each class, N x K"
            )
        if value.shape[1] < 2:
            raise AntichainError("the model has one class, but cross-entropy takes two at least")
        logits[i] = t.plain(value)
    return whole, copy, t, logits


def stored_numbers(name, tensor):
    """Returns what weights.safetensors has of a tensor of the state_dict: float32, or an int64 scalar."""
    if tensor.is_complex() or tensor.is_quantized or tensor.layout is not torch.strided or tensor.dim() > 5:
        raise AntichainError(
            f"{name} of the state_dict is {tensor.dtype} of {tensor.dim()} axes, which a file of weights "
            "can't hold"
        )
    if tensor.is_floating_point():
        if not tensor.isfinite().all():
            raise AntichainError(f"{name} has numbers that are not finite (NaN or infinity)")
        return tensor.detach().cpu().float().numpy()
    whole = tensor.detach().cpu().long()
    if tensor.dim() and tensor.numel() and whole.abs().max() > MOST_EXACT:
        raise AntichainError(
            f"{name} has whole numbers above {MOST_EXACT}, which a file of weights can't hold"
        )
    return whole.float().numpy() if tensor.dim() else whole.numpy()


def stored_state(module, t):
    """Returns the arrays of weights.safetensors by their names in the state_dict, and what graph.json has to
    say of them: names that differ from those of its nodes, and tensors that no node has, which are kept as
    they are.
    """
    state = module.state_dict()
    for name, tensor in state.items():
        if not isinstance(tensor, torch.Tensor):
            raise AntichainError(f"{name} of the state_dict is no tensor, so a file of weights can't hold it")
        parts = name.split("/")
        if not name.isprintable() or (len(parts) > 1 and not set(parts).isdisjoint(("", ".", ".."))):
            raise AntichainError(f"the name {name!r} can't stand in a file of weights; rename the module")
    arrays = {name: stored_numbers(name, state[name]) for name in state}
    own = dict([*module.named_parameters(), *module.named_buffers()])
    for name in t.state:
        if name not in state or not torch.equal(state[name].to(own[name]), own[name]):
            raise AntichainError(
                f"the network's {name} is not in the module's state_dict, or has other numbers there, so "
                "what is trained could not be taken back (is it a buffer with persistent=False?)"
            )
    notes = [{"name": name, "is": own} for name, own in t.state.items() if own != name]
    notes += [
        {"name": name, "shape": list(a.shape), "dtype": str(a.dtype)}
        for name, a in arrays.items()
        if name not in t.state
    ]
    return {n: arrays[n] for n in [*t.state, *(n for n in arrays if n not in t.state)]}, notes


def graph_json(name, made_by, t, images, labels, losses, logits, notes):
    def node_json(node):
        entry = {"name": node.name, "op": node.op, "inputs": node.inputs}
        if node.options:
            entry["options"] = node.options
        entry["from"] = str(node.where)
        return entry

    def loss_json(loss, value):
        options = {"label_smoothing": loss.label_smoothing, "weight": loss.weight}
        options = {key: value for key, value in options.items() if value != getattr(Loss, key)}
        entry = {"name": loss.name, "op": "softmax_cross_entropy", "inputs": [value.node, "labels"]}
        return {**entry, "options": options} if options else entry

    soft = labels.is_floating_point()
    # The model's own loss comes last.
    nodes = [node_json(n) for n in t.nodes] + [loss_json(*l) for l in reversed(list(zip(losses, logits)))]
    inputs = [
        {"name": "images", "shape": list(images.shape[1:]), "dtype": "float32"},
        {"name": "labels", "shape": list(labels.shape[1:]), "dtype": "float32" if soft else "int32"},
    ]
    return graph_text(name, made_by, inputs, nodes, notes)


def model_name(module):
    """Returns a name that can be a part of a file's: the class's."""
    return re.sub(r"[^A-Za-z0-9_]", "_", type(module).__name__)[:64]


def write_folder(module, example_inputs, loss, folder, labels, auxiliary, record):
    """Does what antichain.from_torch says."""
    with torch.inference_mode(False), torch.enable_grad(), torch.random.fork_rng(devices=[]):
        return written(module, example_inputs, loss, folder, labels, auxiliary, record)


def written(module, example_inputs, loss, folder, labels, auxiliary, with_record):
    check_module(module)
    auxiliary = checked_number("auxiliary", auxiliary)
    smoothing = label_smoothing_of(loss)
    clauses = what_is_not_done(module)
    images = example_images(example_inputs)
    whole, copy, t, logits = read(module, images, loss, auxiliary, clauses)
    losses = [Loss("loss", label_smoothing=smoothing)] + [
        Loss(t.names.unique(f"loss.auxiliary{i}"), auxiliary, smoothing) for i in range(1, len(logits))
    ]
    labels = checked_labels(labels, len(images), logits[0].shape[1])
    check(copy, whole, {"images": images})
    check_same(
        module,
        copy,
        images,
        (t, logits),
        lambda net, x, training: read(net, x, loss, training and auxiliary, training=training)[2:],
    )
    arrays, notes = stored_state(module, t)
    of_losses = dataclasses.replace(whole, outputs=whole.outputs[: len(losses)])
    training = Training(module, of_losses, loss_function(loss), losses, images, labels)
    numbers = record(training, t.nodes, t.state) if with_record else training.compare(1)

    name = model_name(module)
    text = graph_json(name, whole.made_by, t, images, labels, losses, logits, notes)
    folder = f"{name}.antichain" if folder is None else folder
    return files.write_folder(folder, text, arrays, numbers if with_record else None)
