"""Writes a PyTorch model as a folder NAME.antichain; docs/bring-your-model.md has the format and an
example."""

import dataclasses
import re

import torch

from antichain import folder as files
from antichain.error import AntichainError
from antichain.folder import graph_text
from antichain.graph_operators import MOST_AXES
from antichain.pytorch.calls import Call, needed
from antichain.pytorch.capture import capture, check, example_images, told
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
        what = "auxiliary is the weight of the loss of each further output"
        raise AntichainError(f"{what}, but the model has one output")
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
        if not tensor.isfinite().all():
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
    arrays = {name: stored_numbers(name, tensor) for name, tensor in state.items()}
    own = dict([*module.named_parameters(), *module.named_buffers()])
    for name in t.state:
        if name not in state or not torch.equal(state[name].to(own[name]), own[name]):
            raise AntichainError(
                f"the network's {name} is not in the module's state_dict, or has other numbers there, so "
                "what is trained could not be taken back (is it a buffer with persistent=False?)"
            )
    kept = {name: array for name, array in arrays.items() if name not in t.state}
    notes = [{"name": name, "is": own} for name, own in t.state.items() if own != name]
    notes += [{"name": n, "shape": list(a.shape), "dtype": str(a.dtype)} for n, a in kept.items()]
    return {**{name: arrays[name] for name in t.state}, **kept}, notes


def graph_json(name, made_by, t, images, labels, losses, logits, notes):
    def entry(name, op, inputs, options):
        return {"name": name, "op": op, "inputs": inputs, **({"options": options} if options else {})}

    nodes = [{**entry(n.name, n.op, n.inputs, n.options), "from": str(n.where)} for n in t.nodes]
    for loss, value in reversed(list(zip(losses, logits))):  # the model's own loss comes last
        options = {"label_smoothing": loss.label_smoothing, "weight": loss.weight}
        options = {key: value for key, value in options.items() if value != getattr(Loss, key)}
        nodes.append(entry(loss.name, "softmax_cross_entropy", [value.node, "labels"], options))
    kinds = {"images": "float32", "labels": "float32" if labels.is_floating_point() else "int32"}
    shapes = {"images": images.shape[1:], "labels": labels.shape[1:]}
    inputs = [{"name": n, "shape": list(shapes[n]), "dtype": kind} for n, kind in kinds.items()]
    return graph_text(name, made_by, inputs, nodes, notes)


def model_name(module):
    """Returns a name that can be a part of a file's: the class's."""
    return re.sub(r"[^A-Za-z0-9_]", "_", type(module).__name__)[:64]


def write_folder(*given):
    """Does what antichain.from_torch says."""
    with torch.inference_mode(False), torch.enable_grad(), torch.random.fork_rng(devices=[]):
        return written(*given)


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

    def read_again(net, x, training):
        return read(net, x, loss, training and auxiliary, training=training)[2:]

    check_same(module, copy, images, (t, logits), read_again)
    arrays, notes = stored_state(module, t)
    of_losses = dataclasses.replace(whole, outputs=whole.outputs[: len(losses)])
    training = Training(module, of_losses, loss_function(loss), losses, images, labels)
    numbers = record(training, t.nodes, t.state) if with_record else training.compare(1)

    name = model_name(module)
    text = graph_json(name, whole.made_by, t, images, labels, losses, logits, notes)
    folder = f"{name}.antichain" if folder is None else folder
    return files.write_folder(folder, text, arrays, numbers if with_record else None)
