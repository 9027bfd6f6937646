"""Writes a PyTorch model as a folder NAME.antichain; docs/bring-your-model.md has the format and an
example."""

import dataclasses
import json
import pathlib

import torch

from antichain import safetensors
from antichain.error import AntichainError
from antichain.pytorch.calls import Call, needed
from antichain.pytorch.capture import capture, check, example_images
from antichain.pytorch.names import name_calls
from antichain.pytorch.operators import OPERATORS, ROWS
from antichain.pytorch.record import record as record_numbers
from antichain.pytorch.translate import Value, translate

RESERVED = ("images", "labels", "loss")


@dataclasses.dataclass(frozen=True)
class Loss:
    name: str
    weight: float = 1.0
    label_smoothing: float = 0.0


def label_smoothing_of(loss):
    if loss in ("cross_entropy", "nll_loss"):
        return 0.0
    if isinstance(loss, torch.nn.CrossEntropyLoss):
        if loss.weight is not None or loss.reduction != "mean":
            raise AntichainError(
                "a CrossEntropyLoss has no weights for classes and takes the mean of a batch"
            )
        return float(loss.label_smoothing)
    raise AntichainError(
        f'the loss {loss!r} is not supported; choose "cross_entropy", "nll_loss" behind a '
        "log_softmax, or a torch.nn.CrossEntropyLoss"
    )


def logits_of(output, loss):
    """Returns what cross-entropy is taken of: the input of a last log_softmax, which is a part of the
    loss."""
    if isinstance(output, Call) and output.key == "log_softmax":
        return output.args[0]
    if loss == "nll_loss":
        raise AntichainError("nll_loss needs a model that ends with a log_softmax")
    if not isinstance(output, Call):
        raise AntichainError("the model returns a tensor that it does not compute")
    return output


def checked_labels(labels, batch, classes):
    if labels is None:
        return torch.arange(batch) % classes
    labels = torch.as_tensor(labels).cpu()
    shape = (batch, classes) if labels.is_floating_point() else (batch,)
    if tuple(labels.shape) != shape:
        raise AntichainError(
            f"labels have the shape {tuple(labels.shape)}, but {batch} samples of {classes} classes have "
            f"{shape}"
        )
    if not labels.is_floating_point() and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
        raise AntichainError(
            f"labels lie between 0 and {classes - 1}, not between {labels.min()} and {labels.max()}"
        )
    return labels if labels.is_floating_point() else labels.long()


def graph_json(name, made_by, t, images, labels, losses, logits):
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
    head = {"format": "antichain graph", "version": 1, "model": name, "made_by": made_by}
    inputs = [
        {"name": "images", "shape": list(images.shape[1:]), "dtype": "float32"},
        {"name": "labels", "shape": list(labels.shape[1:]), "dtype": "float32" if soft else "int32"},
    ]
    lines = [json.dumps(head)[:-1] + ',\n"inputs": [']
    lines += [",\n".join("  " + json.dumps(i) for i in inputs), '],\n"nodes": [']
    lines += [",\n".join("  " + json.dumps(n) for n in nodes), "]}"]
    return "\n".join(lines) + "\n"


def write_folder(module, example_inputs, loss, folder, labels, auxiliary, record):
    """Does what antichain.from_torch says."""
    smoothing = label_smoothing_of(loss)
    images = example_images(example_inputs)
    whole, copy = capture(module, {"images": images})
    outputs = [logits_of(output, loss) for output in whole.outputs[: None if auxiliary else 1]]
    captured = dataclasses.replace(whole, calls=needed(whole.calls, outputs), outputs=outputs)
    name_calls(captured.calls, RESERVED)
    t, logits = translate(captured, RESERVED, ROWS, OPERATORS)
    for i, value in enumerate(logits):
        if not isinstance(value, Value) or value.rank != 2:
            raise AntichainError(
                f"the model's output has the shape {getattr(value, 'shape', None)}, but cross-entropy "
                "takes one number for each class, N x K"
            )
        logits[i] = t.plain(value)
    losses = [Loss("loss", label_smoothing=smoothing)] + [
        Loss(t.names.unique(f"loss.auxiliary{i}"), auxiliary, smoothing) for i in range(1, len(logits))
    ]
    labels = checked_labels(labels, len(images), logits[0].shape[1])
    check(copy, whole, {"images": images})

    name = type(module).__name__
    folder = pathlib.Path(folder if folder is not None else f"{name}.antichain")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "graph.json").write_text(graph_json(name, captured.made_by, t, images, labels, losses, logits))
    state = module.state_dict()
    stored = {n: state[n].detach().cpu() for n in [*t.parameters, *t.buffers] if n in state}
    safetensors.write(
        folder / "weights.safetensors",
        {
            n: (value.float() if value.is_floating_point() else value.long()).numpy()
            for n, value in stored.items()
        },
    )
    numbers = folder / "check.safetensors"
    numbers.unlink(missing_ok=True)
    if record:
        safetensors.write(numbers, record_numbers(captured, t.nodes, t.parameters, losses, images, labels))
    return folder
