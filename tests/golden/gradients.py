#!/usr/bin/env python3
"""Writes tests/golden/gradients.txt: how far PyTorch's float32 is from its float64.

    nice python3 tests/golden/gradients.py [--only FORM/MODEL ...]     (Debian: python3-torch,
                                                                       python3-torchvision)

It has the logits of each network, the losses of the samples, and the gradient of every parameter. The weights
are from networks.py, dropout is off, and label smoothing is 0. A network's first line says how it is drawn:

    network FORM MODEL SIDE SHIFT draws A+B A+B ...

A draw is a batch of two images, "images A" and "images B" of networks.drawn, with labels 0 and 1. SHIFT is
added to the biases of batch norm, so that only one in some thousand of its outputs is negative. The draws are
chosen such that no input of an activation and no two values of a max pool's window are within a few times
float32's error in their channel of a kink (kinks.py), so that errors are of rounding only. Then follow lines
of a module and its parameters:

    layer1.0.bn1 weight 3.1e-07 bias 2.2e-07

Each number is the root mean square over the draws of |float32 - float64|, in the L2 norm over the tensor, and
no less than what rounding the right answer to float32 costs. Logits and losses are taken relative to their
own norm, a gradient to that of all parameters together: some are zero but for rounding (batch norm takes out
what scales its input).
"""
import argparse
import copy
import pathlib

import torch
import torchvision
from torch.nn import functional

import kinks
import networks

FILE = pathlib.Path(__file__).parent / "gradients.txt"
MODELS = ["alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "inception_v3", "mobilenet_v2",
          "mobilenet_v3_large", "resnet18", "resnet50", "resnet101", "resnext50", "resnext101", "squeezenet1_0", "vgg16"]
# Small images, and smaller ones for VGG, whose first layers hold most of the kinks.
IMAGENET = {model: 75 for model in MODELS} | {"inception_v3": 107, "vgg16": 32}
NO_BATCH_NORM = {"alexnet", "convnext_tiny", "squeezenet1_0", "vgg16"}
# The middle of ReLU6's kinks; above the hard swish's at 3; EfficientNet's SiLU has none.
SHIFTS = {"efficientnet_b0": 0, "mobilenet_v2": 3, "mobilenet_v3_large": 6} | {model: 0 for model in NO_BATCH_NORM}
SHIFT, DRAWS = 3.5, 4


def images(samples, side):
    drawn = [networks.drawn(f"images {k}", (1, 3, side, side)) for k in samples]
    return torch.cat([torch.from_numpy(x.astype("float32")) for x in drawn])


def build(model, form, shift):
    """The network in float64 and in float32."""
    net = networks.load(networks.build(model, form)).train()
    with torch.no_grad():
        for module in net.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.bias += shift
    return copy.deepcopy(net).double(), net


def results(net, batch):
    """{name: gradient}, the logits and the losses of the samples, in float64."""
    net.zero_grad()
    logits = net(batch)
    losses = functional.cross_entropy(logits, torch.arange(len(batch)), reduction="none")
    losses.mean().backward()
    tensors = {name: p.grad for name, p in net.named_parameters()}
    return {name: x.detach().double() for name, x in {**tensors, "logits": logits, "losses": losses}.items()}


def errors(x, right):
    """{name: error}."""
    whole = sum((g**2).sum().item() for name, g in right.items() if name not in ("logits", "losses")) ** 0.5
    norm = torch.linalg.vector_norm
    return {name: norm(x[name] - r).item() / (norm(r).item() if name in ("logits", "losses") else whole)
            for name, r in right.items()}


def find_draws(model, net64, net32, side):
    """Batches far from kinks. Without batch norm the samples are independent, and are chosen one by one."""
    wanted, size = (2 * DRAWS, 1) if model in NO_BATCH_NORM else (DRAWS, 2)
    errors, found, k = None, [], 0
    while len(found) < wanted:
        samples = list(range(k, k + size))
        batch = images(samples, side)
        errors = errors or kinks.largest_errors(net64, net32, batch)
        # What is within 3 and 1 of the errors in float32, which is faster, is within 4 and 3 in float64.
        if (kinks.far(net32, batch, errors, 3, 1) and kinks.far(net64, batch.double(), errors)
                and kinks.same_sides(net64, net32, batch)):
            found.append(samples)
        k += size
    flat = [k for samples in found for k in samples]
    return list(zip(flat[::2], flat[1::2]))


def measure(net64, net32, draws, side):
    """{name: error of PyTorch's float32}."""
    squares = {}
    for pair in draws:
        batch = images(pair, side)
        right, single = results(net64, batch.double()), results(net32, batch)
        theirs, least = errors(single, right), errors({name: r.float().double() for name, r in right.items()}, right)
        for name in right:
            squares[name] = squares.get(name, 0) + max(theirs[name], least[name])**2 / len(draws)
    return {name: square**0.5 for name, square in squares.items()}


def text(form, model, side, shift, draws, found):
    lines = [f"network {form} {model} {side} {shift:g} draws " + " ".join(f"{a}+{b}" for a, b in draws)]
    lines += [f"{name} {found.pop(name):.2g}" for name in ("logits", "losses")]
    modules = {}
    for name, error in found.items():
        module, _, parameter = name.rpartition(".")
        modules.setdefault(module, []).append(f"{parameter} {error:.2g}")
    return "\n".join(lines + [f"{module} {' '.join(words)}" for module, words in modules.items()]) + "\n"


def recorded():
    """{(form, model): the text of a network}."""
    sections, key = {}, None
    for line in FILE.read_text().splitlines(True) if FILE.exists() else []:
        if line.startswith("network"):
            key = tuple(line.split()[1:3])
        if not line.startswith("#"):
            sections[key] = sections.get(key, "") + line
    return sections


def write(sections):
    header = f"# torch {torch.__version__}, torchvision {torchvision.__version__}: float32 beside float64, one thread\n"
    FILE.write_text(header + "".join(sections[key] for key in sorted(sections)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", help="FORM/MODEL; the others stay as they are")
    cases = [("cifar", m, 32) for m in MODELS] + [("imagenet", m, side) for m, side in IMAGENET.items()]
    only = parser.parse_args().only
    torch.set_num_threads(1)
    for form, model, side in cases:
        if only and f"{form}/{model}" not in only:
            continue
        shift = SHIFTS.get(model, SHIFT)
        net64, net32 = build(model, form, shift)
        draws = find_draws(model, net64, net32, side)
        found = measure(net64, net32, draws, side)
        print(form, model, draws, f"logits {found['logits']:.1e}", f"largest {max(found.values()):.1e}", flush=True)
        write(recorded() | {(form, model): text(form, model, side, shift, draws, found)})


if __name__ == "__main__":
    main()
