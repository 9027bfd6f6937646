#!/usr/bin/env python3
"""Writes tests/golden/optimisers.txt: the weights of a small network after 100 steps of PyTorch's optimisers.

    python3 tests/golden/optimisers.py [NAME ...]         (Debian: python3-torch; for muon torch 2.9 or later)

Everything is in float64. The network is y = b2 + W2 tanh(b1 + W1 x), with 6 inputs, 7 hidden units and 4
outputs; the loss is the mean over the outputs of (y - t)^2 / 2, over 8 samples. Weights and samples are sines
of their indices, so that tests/pipeline/train/torch_optimisers_test.cpp has the same ones. A line has a name
and the last weights: W1, b1, W2 and b2 in this order, row by row.
"""
import pathlib
import sys

import torch

FILE = pathlib.Path(__file__).parent / "optimisers.txt"
STEPS = 100


def sines(rows, columns, phase):
    index = torch.arange(rows * columns, dtype=torch.float64)
    return torch.sin(1.7 * index + phase).reshape(rows, columns)


def groups(net, decay, all_of_them):
    w1, b1, w2, b2 = net
    return [{"params": [w1, w2], "weight_decay": decay},
            {"params": [b1, b2], "weight_decay": decay if all_of_them else 0}]


def muon(net):
    """Updates both matrices by Muon and the biases by AdamW; PyTorch would orthogonalise in bfloat16."""
    def orthogonal(u, coefficients, steps, eps):
        a, b, c = coefficients
        x = u.T if u.size(0) > u.size(1) else u
        x = x / x.norm().clamp(min=eps)
        for _ in range(steps):
            gram = x @ x.T
            x = a * x + (b * gram + c * gram @ gram) @ x
        return x.T if u.size(0) > u.size(1) else x

    torch.optim._muon._zeropower_via_newtonschulz = orthogonal
    w1, b1, w2, b2 = net
    return [torch.optim.Muon([w1, w2], 0.01, weight_decay=0.1, momentum=0.95, adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW([b1, b2], 0.01, weight_decay=0)]


# Each name has how the optimiser is made of the parameters, and the largest norm of the gradients or None.
RUNS = {
    "sgd": (lambda net: torch.optim.SGD(groups(net, 0.01, True), 0.1, momentum=0.9, nesterov=True), None),
    "sgd_plain_weights": (lambda net: torch.optim.SGD(groups(net, 0.01, False), 0.1, momentum=0.9), None),
    "adamw": (lambda net: torch.optim.AdamW(groups(net, 0.1, False), 0.01), None),
    "adamw_all": (lambda net: torch.optim.AdamW(groups(net, 0.1, True), 0.02, betas=(0.8, 0.95), eps=1e-6), None),
    "adamw_clipped": (lambda net: torch.optim.AdamW(groups(net, 0.1, False), 0.01), 0.05),
    "muon": (muon, None),
}


def train(make, most):
    net = [0.5 * sines(7, 6, 0.1), 0.1 * sines(1, 7, 0.2), 0.5 * sines(4, 7, 0.3), 0.1 * sines(1, 4, 0.4)]
    net = [w.squeeze(0).clone().requires_grad_() if w.shape[0] == 1 else w.requires_grad_() for w in net]
    x, target = sines(8, 6, 0.5), sines(8, 4, 0.6)
    optimisers = make(net)
    optimisers = optimisers if isinstance(optimisers, list) else [optimisers]
    for _ in range(STEPS):
        for optimiser in optimisers:
            optimiser.zero_grad()
        y = torch.tanh(x @ net[0].T + net[1]) @ net[2].T + net[3]
        (((y - target) ** 2).mean() / 2).backward()
        if most is not None:
            torch.nn.utils.clip_grad_norm_(net, most)
        for optimiser in optimisers:
            optimiser.step()
    return torch.cat([w.detach().flatten() for w in net])


def main():
    lines = {}
    if FILE.exists():
        lines = {line.split()[0]: line for line in FILE.read_text().splitlines() if not line.startswith("#")}
    for name in sys.argv[1:] or RUNS:
        lines[name] = f"{name} " + " ".join(f"{x:.15g}" for x in train(*RUNS[name]).tolist())
    header = f"# PyTorch's weights in float64 after {STEPS} steps\n"
    FILE.write_text(header + "".join(lines[name] + "\n" for name in RUNS if name in lines))


if __name__ == "__main__":
    main()
