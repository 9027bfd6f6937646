#!/usr/bin/env python3
"""Writes tests/golden/losses.txt: PyTorch's losses in float64, and the size of their gradient.

    python3 tests/golden/losses.py               (Debian: python3-torch, python3-torchvision)

There is one micro-batch of two samples with labels 0 and 1. Label smoothing is 0.1, dropout is off, and the
weights are from networks.py. A line has:

    form model pixels auxiliary weight   loss of sample 0   of sample 1   norm of the gradient over all
                                         parameters

The losses are the classifier's, and the gradient is that of the mean loss, to which an auxiliary head adds
its own with its weight.
"""
import pathlib

import numpy
import torch
import torchvision
from torch.nn import functional

import networks

FILE = pathlib.Path(__file__).parent / "losses.txt"
CIFAR = ["alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "inception_v3", "mobilenet_v2",
         "mobilenet_v3_large", "resnet18", "resnet20", "resnet32", "resnet50", "resnet56", "resnet101", "resnext50",
         "resnext101", "squeezenet1_0", "vgg16"]
# Small images; Inception-v3 would end in a single pixel of 75, and batch norm over two values is all
# rounding.
IMAGENET = {"alexnet": 75, "convnext_tiny": 75, "densenet121": 75, "efficientnet_b0": 75, "inception_v3": 139,
            "mobilenet_v2": 75, "mobilenet_v3_large": 75, "resnet18": 75, "resnet50": 75, "resnet101": 75,
            "resnext50": 75, "resnext101": 75, "squeezenet1_0": 75, "vgg16": 75}
CASES = ([("cifar", m, 32, 0.4 if m == "inception_v3" else 0) for m in CIFAR] +
         [("imagenet", m, side, 0) for m, side in IMAGENET.items()] + [("imagenet", "inception_v3", 299, 0.4)])


def line(form, model, side, aux):
    net = networks.load(networks.build(model, form, aux > 0)).double().train()
    labels = torch.arange(2)

    def losses(logits):
        smoothing = float(numpy.float32(0.1))  # ours is a float32
        return functional.cross_entropy(logits, labels, label_smoothing=smoothing, reduction="none")

    out = net(networks.images(2, side).double())
    per_sample = losses(out.logits if aux else out)
    objective = per_sample.mean() + (aux * losses(out.aux_logits).mean() if aux else 0)
    objective.backward()
    norm = torch.sqrt(sum((p.grad**2).sum() for p in net.parameters()))
    return f"{form} {model} {side} {aux} {per_sample[0]:.12g} {per_sample[1]:.12g} {norm:.12g}\n"


if __name__ == "__main__":
    with open(FILE, "w") as file:
        file.write(f"# torch {torch.__version__}, torchvision {torchvision.__version__}, float64\n")
        for case in CASES:
            file.write(line(*case))
            print(*case, flush=True)
