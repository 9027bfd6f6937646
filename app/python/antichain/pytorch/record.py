"""Computes the numbers of check.safetensors: what PyTorch makes of one batch, in float64 and in training
mode, with dropout and stochastic depth left out. docs/bring-your-model.md lists them."""

import numpy
import torch

from antichain.pytorch.calls import replay

RATE, STEPS = 1e-3, 3  # of stochastic gradient descent, without momentum and decay


def loss_of(outputs, labels, losses):
    """Returns the mean loss of a batch: the sum of all losses, each with its weight."""
    return sum(
        loss.weight * torch.nn.functional.cross_entropy(output, labels, label_smoothing=loss.label_smoothing)
        for output, loss in zip(outputs, losses)
    )


def record(captured, nodes, trained, losses, images, labels):
    """Returns arrays by their names in the file. `nodes` are those of the graph, `trained` names of
    parameters."""
    tensors = {
        name: t.detach().double() if t.is_floating_point() else t for name, t in captured.tensors.items()
    }
    for name in trained:
        tensors[name].requires_grad_()
    shown = {id(node.call): node for node in nodes if node.call}
    results = {
        "input.images": images.double().numpy(),
        "input.labels": labels.double().numpy() if labels.is_floating_point() else labels.int().numpy(),
    }
    reported = []
    for step in range(STEPS):
        outputs = {}
        for call, value in replay(captured.calls, tensors, {"images": images.double()}, random=False):
            if any(call is output for output in captured.outputs):
                outputs[id(call)] = value
            node = shown.get(id(call))
            if step == 0 and node:
                back = [node.order.index(axis) for axis in range(len(node.order))]
                results[f"node.{node.name}"] = value.detach().permute(back).contiguous().numpy()
        loss = loss_of([outputs[id(output)] for output in captured.outputs], labels, losses)
        reported.append(loss.item())
        if step == STEPS - 1:
            break
        gradients = torch.autograd.grad(loss, [tensors[name] for name in trained])
        if step == 0:
            results["loss"] = numpy.array(loss.item())
            results.update((f"gradient.{name}", g.numpy()) for name, g in zip(trained, gradients))
        with torch.no_grad():
            for name, gradient in zip(trained, gradients):
                tensors[name] -= RATE * gradient
    results["losses"] = numpy.array(reported)
    return results
