"""antichain.from_torch reads what people write between layers, beside what from_torch_test.py has."""

import unittest

import torch
import torch.nn.functional as F
from torch import nn

import antichain
from attention_test import Case


def changed(x):
    x = x.clone()
    x[:, 0], x[:, 3] = 0, torch.arange(8.0)
    x[:, 1:3] *= 2
    return x


# Functions of a model and N x 8 x 6 x 8.
IDIOMS = {
    "added": lambda m, x: torch.addcmul(x, x, m.other(x), value=0.5) + torch.addcdiv(x, x, m.other(x).exp()),
    "changed": lambda m, x: changed(x),
    "cumsum": lambda m, x: x.cumsum(3) + x.cumsum(1) + x.mean((2, 3)).cumsum(1)[..., None, None],
    "cumprod": lambda m, x: torch.cumprod(torch.sigmoid(x), dim=3) + torch.cumprod(x, 2),
    "diff": lambda m, x: torch.diff(x) + torch.tril(x)[..., 1:] - torch.triu(x, 1)[..., 1:],
    "glu": lambda m, x: F.glu(torch.cat([x, m.other(x)], 1), 1) + F.softmin(x, 1)[:, :8],
    "hyperbolic": lambda m, x: torch.sinh(x) + torch.cosh(x) + torch.exp2(x) + torch.logit(torch.sigmoid(x)),
    "lerp": lambda m, x: torch.lerp(x, m.other(x), 0.3) + torch.hypot(x, m.other(x)),
    "lrn": lambda m, x: F.local_response_norm(x, 3, 0.1, 0.7, 2.0) + F.local_response_norm(x, 4),
    "logaddexp": lambda m, x: torch.logaddexp(x, m.other(x)) + torch.sinc(x) * torch.sign(x),
    "movedim": lambda m, x: x.movedim(1, -1).movedim((3, 1), (1, 2)) + torch.moveaxis(x, 2, 3).transpose(2, 3),
    "norm": lambda m, x: x / (torch.linalg.norm(F.relu(x - 9), dim=1, keepdim=True) + 1),
    "pairs": lambda m, x: torch.max(x, m.other(x)) - torch.min(x, m.other(x)) * torch.where(x.isnan(), 0.0, x),
    "pixel_unshuffle": lambda m, x: F.pixel_unshuffle(x, 2)[:, ::4],
    "table": lambda m, x: x + m.mlp(m.places).sum(-1),
    "products": lambda m, x: torch.einsum("bchw,hwd->bchd", x, m.sides)
    + torch.einsum("bchw,bch,bcw->bchw", x, x.mean(3), x.mean(2))
    + torch.matmul(m.sides, x[..., None]).squeeze(-1),
    "queries": lambda m, x: (m.sides[0].unsqueeze(0).repeat(len(x), 1, 1) @ x[:, 0].mT).mT[:, None] * x,
    "windows": lambda m, x: x.unfold(2, 3, 3).unfold(3, 4, 2).sum((4, 5)),
    "unfold": lambda m, x: F.unfold(x, (3, 2), 2, (2, 1), (1, 2)).reshape(len(x), 48, -1)[:, ::6, :, None],
}


class Net(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f, self.first, self.head = f, nn.Conv2d(3, 8, 3, 1, 1), nn.Linear(8, 5)
        self.other, self.mlp = nn.Conv2d(8, 8, 1), nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 3))
        grid = torch.meshgrid(torch.linspace(-1, 1, 6), torch.linspace(-1, 1, 8), indexing="ij")
        self.sides = nn.Parameter(torch.randn(6, 8, 8) / 8)
        self.register_buffer("places", torch.stack(grid, -1), persistent=False)

    def forward(self, x):
        return self.head(self.f(self, self.first(x)).mean((2, 3)))


class Columns(nn.Module):
    """Has whole numbers that are computed: columns of a table, with rows of their own in one embedding."""

    def __init__(self):
        super().__init__()
        self.kind, self.every, self.bag = nn.Embedding(4, 6), nn.Embedding(9, 6), nn.EmbeddingBag(5, 6)
        self.register_buffer("first", torch.tensor([0, 4, 7]))
        self.table, self.head = nn.Embedding(3, 2), nn.Linear(6, 5)
        self.register_buffer("apart", torch.tensor([[0, 1, 2], [1, 0, 1], [2, 1, 0]]))

    def forward(self, columns, words):
        rows = self.every(columns + self.first) + self.table(self.apart).sum(-1) @ self.every.weight[:3]
        x = self.kind(columns[:, 1]) + rows.sum(1) + self.bag(words)
        return self.head(x + F.one_hot(columns[:, 2], 6).float())


class Idioms(Case):
    def test_whole_numbers_that_are_computed(self):
        torch.manual_seed(1)
        given = torch.randint(0, 2, (3, 3)), torch.randint(0, 5, (3, 4))
        antichain.from_torch(Columns(), given, folder=self.folder / "net.antichain")
        antichain.run("check", graph=self.folder / "net.antichain")

    def test_they_give_the_numbers_of_pytorch(self):
        for name, f in IDIOMS.items():
            with self.subTest(name):
                torch.manual_seed(1)
                self.write(Net(f), torch.randn(3, 3, 6, 8))
        antichain.run("check", graph=self.folder / "net.antichain")


if __name__ == "__main__":
    unittest.main()
