"""What tests of antichain.from_torch share: a folder to write to, and small models."""

import json

import torch
from torch import nn

import antichain
from in_a_folder import InAFolder


def seeded(make):
    torch.manual_seed(1)
    return make()


class Case(InAFolder):
    def setUp(self):
        super().setUp()
        torch.set_num_threads(1)
        self.folder /= "net.antichain"

    def write(self, module, *shape, **options):
        torch.manual_seed(2)
        return antichain.from_torch(module, torch.randn(*shape), folder=self.folder, **options)

    def graph(self):
        return json.loads((self.folder / "graph.json").read_text())

    def node(self, name):
        return next(node for node in self.graph()["nodes"] if node["name"] == name)


class Freezing(nn.Sequential):
    def train(self, mode=True):  # returns nothing, as users forget
        super().train(mode)
        self[0].bias.requires_grad_(not mode)


def of_modules(change):
    """Returns a function that makes a small model, and changes it."""

    def make():
        model = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.1), nn.Flatten(), nn.Linear(288, 4)
        )
        other = change(model)
        return other if isinstance(other, (int, type, Freezing, torch.jit.ScriptModule)) else model

    return make
