#!/usr/bin/env python3
"""Writes tests/golden/five_steps.txt: PyTorch's losses in float64 over five steps of SGD.

    python3 tests/golden/five_steps.py [MODEL ...]               (Debian: python3-torch, python3-torchvision)

It trains the CIFAR forms of gradients.txt, each on its first batch at every step (Nesterov, momentum 0.9,
weight decay 0.0005). A line has the rate and six losses: before each step, and after the last.

The rate is the largest of 0.1, 0.05, 0.02, 0.01 ... at which no loss is above the first and PyTorch's float32
stays within 2.5e-4 of its float64: in each loss, and in the distance between the weights relative to how far
they have moved. One run may be lucky, because weights that move pass kinks. So three more runs must stay as
near, whose first weights are off by up to four times float32's rounding, as Winograd may be. Ours is then
held to 1e-3, four times that.
"""
import argparse
import copy
import math
import pathlib

import numpy
import torch
import torchvision

import gradients
import networks

FILE = pathlib.Path(__file__).parent / "five_steps.txt"
RATES = [digit * 10.0**power for power in range(-1, -8, -1) for digit in ((1,) if power == -1 else (5, 2, 1))]
LIMIT = 2.5e-4


def single(x):
    """A hyperparameter as ours has it: a float32."""
    return float(numpy.float32(x))


def train(net, batch, rate):
    """The losses, and how far each weight has moved; None where a loss is above the first, is 0, or is none.
    """
    start = [p.detach().clone() for p in net.parameters()]
    optimiser = torch.optim.SGD(net.parameters(), single(rate), momentum=single(0.9), weight_decay=single(5e-4),
                                nesterov=True)
    losses = []
    for step in range(6):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(batch), torch.arange(len(batch)))
        losses.append(loss.item())
        if not 0 < losses[-1] <= losses[0]:
            return None
        if step < 5:
            loss.backward()
            optimiser.step()
    return losses, torch.cat([(p.detach().double() - s.double()).flatten() for p, s in zip(net.parameters(), start)])


def nudged(net, k):
    """A copy whose weights are off by up to 4 * 2**-24 of their size, drawn anew for each k; by nothing for
    0."""
    net = copy.deepcopy(net)
    with torch.no_grad():
        for name, p in net.named_parameters() if k else []:
            p *= torch.from_numpy(1 + 2.0**-22 * networks.drawn(f"{name} {k}", tuple(p.shape))).float()
    return net


def distance(a, b):
    """The largest relative difference of losses, and the relative distance of what moved."""
    losses = max(abs(x / y - 1) for x, y in zip(a[0], b[0]))
    return losses, (torch.linalg.vector_norm(a[1] - b[1]) / torch.linalg.vector_norm(b[1])).item()


def network(model):
    """How gradients.txt draws it: side, shift, and the first batch."""
    words = gradients.recorded()["cifar", model].split("\n")[0].split()
    return int(words[3]), float(words[4]), [int(k) for k in words[6].split("+")]


def choose(model):
    side, shift, samples = network(model)
    batch = gradients.images(samples, side)
    for rate in RATES:
        net64, net32 = gradients.build(model, "cifar", shift)
        single = train(nudged(net32, 0), batch, rate)
        right = single and train(net64, batch.double(), rate)
        if right is None:
            continue
        apart = distance(single, right)
        for k in 1, 2, 3:
            other = train(nudged(net32, k), batch, rate) if max(apart) <= LIMIT else None
            apart = tuple(map(max, apart, distance(other, right))) if other else (math.inf, math.inf)
        if max(apart) <= LIMIT:
            return rate, right[0], apart
    raise SystemExit(f"{model}: no rate is small enough")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="*", default=gradients.MODELS)
    torch.set_num_threads(1)
    lines = {}
    if FILE.exists():
        lines = {line.split()[0]: line for line in FILE.read_text().splitlines() if not line.startswith("#")}
    for model in parser.parse_args().models:
        rate, losses, (loss, weights) = choose(model)
        lines[model] = f"{model} {rate:g} " + " ".join(f"{x:.12g}" for x in losses)
        print(lines[model], f"  PyTorch's float32: losses {loss:.1e}, weights {weights:.1e}", flush=True)
        header = f"# torch {torch.__version__}, torchvision {torchvision.__version__}, float64\n"
        FILE.write_text(header + "".join(lines[m] + "\n" for m in sorted(lines)))


if __name__ == "__main__":
    main()
