"""Trains a network of one's own, written in PyTorch, on 2 ranks, and takes it back to PyTorch.

The ranks are threads. With the native build, processes do the same: `mpirun -n 2 antichain train --graph
net.antichain --dataset cifar10 --data-dir FOLDER`.
"""

import antichain
import torch
from antichain import safetensors
from torch import nn


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        return x + nn.functional.silu(self.norm(self.conv(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(Block(32), Block(32), Block(32))
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


# 1. Out of PyTorch, and checked: Antichain computes what PyTorch computed.
net = Net()
folder = antichain.from_torch(net, torch.randn(4, 3, 32, 32), folder="net.antichain")
antichain.run("check", graph=folder)

# 2. Trained on 2 ranks.
options = {"dataset": "synthetic", "batch": 32, "steps": 20, "results": "results"}
antichain.run("train", graph=folder, local=2, **options)

# 3. Back in PyTorch.
antichain.run("export", graph=folder, init="results/weights.h5", out="trained.safetensors")
weights = {name: torch.from_numpy(array) for name, array in safetensors.read("trained.safetensors").items()}
print(net.load_state_dict(weights, strict=False))
