#!/usr/bin/env python3
"""Writes tests/golden/small.antichain: a network with its weights, and what PyTorch computes from one batch.

    python3 tests/golden/graph_folder.py                         (Debian: python3-torch)

docs/bring-your-model.md has the format. The network is written down twice, as a module and as nodes, so that
the folder does not depend on any translation. It has a branch, a gate, an auxiliary loss, and dropout and
stochastic depth, which a recording leaves out. tests/app/commands/graph_program_test.cpp reads the folder.
"""
import json
import pathlib

import torch
from torch import nn
from torch.nn import functional

import tensor_file

FOLDER = pathlib.Path(__file__).parent / "small.antichain"
SAMPLES, SIDE, CLASSES, RATE, STEPS = 4, 8, 5, 1e-3, 3


def node(name, op, inputs, **options):
    written = {"name": name, "op": op, "inputs": inputs, "from": f"self.{name}, graph_folder.py"}
    return written | ({"options": options} if options else {})


NODES = [
    node("conv1", "conv2d", ["images"], out=6, kernel=[3, 5], stride=[1, 2], pad=[1, 2], bias=False),
    node("bn1", "batch_norm", ["conv1"], eps=1e-3, momentum=0.2),
    node("act1", "activate", ["bn1"], function="silu"),
    node("pool1", "average_pool", ["act1"], kernel=3, stride=[2, 1], pad=1, count_include_pad=False),
    node("depthwise", "conv2d", ["pool1"], out=6, kernel=3, pad=1, groups=6),
    node("act2", "relu", ["depthwise"]),
    node("depth", "stochastic_depth", ["act2"], p=0.3, drop="row"),
    node("sum", "add", ["pool1", "depth"]),
    node("squeeze", "global_average_pool", ["sum"]),
    node("excite", "conv2d", ["squeeze"], out=6, kernel=1),
    node("gate", "activate", ["excite"], function="sigmoid"),
    node("gated", "multiply", ["sum", "gate"]),
    node("aux_mean", "mean", ["gated"], axes=[2, 3]),
    node("aux", "linear", ["aux_mean"], out=CLASSES),
    node("last", "permute", ["gated"], order=[0, 2, 3, 1]),
    node("norm", "layer_norm", ["last"], over=[6], eps=1e-6),
    node("flatten", "flatten", ["norm"]),
    node("drop", "dropout", ["flatten"], p=0.5),
    node("fc", "linear", ["drop"], out=CLASSES),
    node("aux_loss", "softmax_cross_entropy", ["aux", "labels"], weight=0.25),
    node("loss", "softmax_cross_entropy", ["fc", "labels"], label_smoothing=0.1),
]
GRAPH = {
    "format": "antichain graph", "version": 1, "model": "small", "made_by": f"torch {torch.__version__}",
    "inputs": [{"name": "images", "shape": [3, SIDE, SIDE], "dtype": "float32"},
               {"name": "labels", "shape": [], "dtype": "int32"}],
    "nodes": NODES,
}


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, (3, 5), stride=(1, 2), padding=(1, 2), bias=False)
        self.bn1 = nn.BatchNorm2d(6, eps=1e-3, momentum=0.2)
        self.depthwise = nn.Conv2d(6, 6, 3, padding=1, groups=6)
        self.excite = nn.Conv2d(6, 6, 1)
        self.aux = nn.Linear(6, CLASSES)
        self.norm = nn.LayerNorm(6, eps=1e-6)
        self.fc = nn.Linear(6 * SIDE * SIDE // 4, CLASSES)

    def forward(self, images):
        """Returns the output of each node but the losses, by its name."""
        y = {"conv1": self.conv1(images)}
        y["bn1"] = self.bn1(y["conv1"])
        y["act1"] = functional.silu(y["bn1"])
        y["pool1"] = functional.avg_pool2d(y["act1"], 3, (2, 1), 1, count_include_pad=False)
        y["depthwise"] = self.depthwise(y["pool1"])
        y["act2"] = y["depth"] = functional.relu(y["depthwise"])
        y["sum"] = y["pool1"] + y["depth"]
        y["squeeze"] = functional.adaptive_avg_pool2d(y["sum"], 1)
        y["excite"] = self.excite(y["squeeze"])
        y["gate"] = torch.sigmoid(y["excite"])
        y["gated"] = y["sum"] * y["gate"]
        y["aux_mean"] = y["gated"].mean((2, 3))
        y["aux"] = self.aux(y["aux_mean"])
        y["last"] = y["gated"].permute(0, 2, 3, 1)
        y["norm"] = self.norm(y["last"])
        y["flatten"] = y["drop"] = y["norm"].flatten(1)
        y["fc"] = self.fc(y["flatten"])
        return y


def main():
    torch.manual_seed(1)
    net = Small()
    images, labels = torch.randn(SAMPLES, 3, SIDE, SIDE).double(), torch.arange(SAMPLES)
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "graph.json").write_text(json.dumps(GRAPH, indent=1) + "\n")
    tensor_file.write(FOLDER / "weights.safetensors", net.state_dict())
    net.double()
    check = {"input.images": images, "input.labels": labels.int()}
    losses = []
    for step in range(STEPS):
        y = net(images)
        loss = functional.cross_entropy(y["fc"], labels, label_smoothing=0.1)
        loss = loss + 0.25 * functional.cross_entropy(y["aux"], labels)
        gradients = torch.autograd.grad(loss, list(net.parameters()))
        if step == 0:
            check |= {f"node.{name}": value.detach() for name, value in y.items()} | {"loss": loss.detach()}
            check |= {f"gradient.{name}": g for (name, _), g in zip(net.named_parameters(), gradients)}
        losses.append(loss.item())
        with torch.no_grad():
            for parameter, gradient in zip(net.parameters(), gradients):
                parameter -= RATE * gradient
    check["losses"] = torch.tensor(losses, dtype=torch.float64)
    tensor_file.write(FOLDER / "check.safetensors", check)


if __name__ == "__main__":
    main()
