"""Computes the numbers of check.safetensors: what PyTorch makes of one batch, in float64 and in training
mode, with dropout and stochastic depth left out, and how far its float32 is from that.
docs/bring-your-model.md lists them."""

import numpy
import torch

from antichain.pytorch.calls import replay

RATE, STEPS = 1e-3, 3  # of stochastic gradient descent, without momentum and decay
PASSES = 3  # in float32; only some of them show what a number next to the kink of a ReLU does to gradients


def loss_of(outputs, labels, losses):
    """Returns the mean loss of a batch: the sum of all losses, each with its weight."""
    return sum(
        loss.weight * torch.nn.functional.cross_entropy(output, labels, label_smoothing=loss.label_smoothing)
        for output, loss in zip(outputs, losses)
    )


def train(captured, trained, losses, images, labels, dtype, look=lambda call, value: None):
    """Trains a copy of the tensors for STEPS steps, in one floating-point type. Returns the losses, and the
    gradients of the first step. `look` sees each call and its result in the first step."""

    def typed(t):
        return t.to(dtype) if t.is_floating_point() else t

    tensors = {name: typed(t.detach().clone()) for name, t in captured.tensors.items()}
    images, labels = typed(images), typed(labels)
    for name in trained:
        tensors[name].requires_grad_()
    reported, first = [], None
    for step in range(STEPS):
        outputs = {}
        for call, value in replay(captured.calls, tensors, {"images": images}, random=False):
            if any(call is output for output in captured.outputs):
                outputs[id(call)] = value
            if step == 0:
                look(call, value.detach() if isinstance(value, torch.Tensor) else value)
        loss = loss_of([outputs[id(output)] for output in captured.outputs], labels, losses)
        reported.append(loss.item())
        if step == STEPS - 1:
            break
        gradients = torch.autograd.grad(loss, [tensors[name] for name in trained])
        first = first or gradients
        with torch.no_grad():
            for name, gradient in zip(trained, gradients):
                tensors[name] -= RATE * gradient
    return numpy.array(reported), {name: g.double().numpy() for name, g in zip(trained, first)}


def record(captured, nodes, trained, losses, images, labels):
    """Returns arrays by their names in the file. `nodes` are those of the graph, `trained` names of
    parameters."""
    shown = {id(node.call): node for node in nodes if node.call}
    results = {
        "input.images": images.double().numpy(),
        "input.labels": labels.double().numpy() if labels.is_floating_point() else labels.int().numpy(),
    }

    def keep(call, value):
        node = shown.get(id(call))
        if node:
            back = [node.order.index(axis) for axis in range(len(node.order))]
            results[f"node.{node.name}"] = value.permute(back).contiguous().numpy()

    given = (captured, trained, losses, images, labels)
    right, gradients = train(*given, torch.float64, keep)
    results.update({"loss": right[0], "losses": right})
    results.update((f"gradient.{name}", gradient) for name, gradient in gradients.items())
    draws = torch.Generator().manual_seed(0)
    for i in range(PASSES):
        # A change by half a rounding at most has everything behind it rounded otherwise.
        rounding = 2**-23 * (torch.rand(images.shape, generator=draws) - 0.5) if i else 0
        off = images.double() * (1 + rounding)
        rounded, rounded_gradients = train(captured, trained, losses, off, labels, torch.float32)
        errors = {f"gradient.{n}": numpy.linalg.norm(rounded_gradients[n] - g) for n, g in gradients.items()}
        errors["losses"] = abs(rounded - right)
        for name, error in errors.items():
            name = f"float32_error.{name}"
            results[name] = numpy.maximum(results.get(name, 0), error)
    return results
