"""Networks that are no classifiers of images, each with its loss and its data, from PyTorch to training:

  any_module.py NETWORK     writes NETWORK.antichain and NETWORK.h5, and trains the network on 2 ranks

The data are drawn, so that nothing is downloaded. Needs PyTorch and h5py. With the native build, processes
train in place of threads: the command is printed, `mpirun -n 2` goes before it in place of `--local 2`.
"""

import dataclasses
import math
import sys

import antichain
import h5py
import torch
import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass
class Task:
    module: nn.Module
    inputs: dict  # tensors by the names of forward's parameters
    targets: dict  # tensors by names of their own
    loss: object  # a loss of torch.nn, a function of outputs and targets, or a list: one for each output


class UNet(nn.Module):
    """Ronneberger, Fischer & Brox, "U-Net: Convolutional Networks for Biomedical Image Segmentation", MICCAI
    2015, with two levels."""

    def __init__(self, classes=3, width=8):
        super().__init__()

        def block(channels, out):
            return nn.Sequential(nn.Conv2d(channels, out, 3, padding=1), nn.GroupNorm(2, out), nn.SiLU())

        self.high, self.low = block(3, width), block(width, 2 * width)
        self.up, self.last = nn.ConvTranspose2d(2 * width, width, 2, 2), block(2 * width, width)
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, image):
        high = self.high(image)
        low = self.low(F.max_pool2d(high, 2))
        return self.head(self.last(torch.cat([high, self.up(low)], 1)))


def unet(samples):
    """Discs are to be told from squares and from what is behind them, but for the last row."""
    image, mask = torch.randn(samples, 3, 16, 24) / 2, torch.zeros(samples, 16, 24, dtype=torch.long)
    rows, columns = torch.meshgrid(torch.arange(16), torch.arange(24), indexing="ij")
    for i in range(samples):
        disc, square = torch.randint(4, 12, (2, 2)).tolist()
        mask[i][(rows - disc[0]) ** 2 + (columns - disc[1]) ** 2 < 12] = 1
        mask[i][((rows - square[0]).abs() < 3) & ((columns - square[1] - 8).abs() < 3)] = 2
        image[i] += torch.stack([mask[i] == c for c in range(3)])
    mask[:, -1] = 255
    weight = torch.tensor([0.5, 1.0, 1.0])
    return Task(UNet(), {"image": image}, {"mask": mask}, nn.CrossEntropyLoss(weight, ignore_index=255))


class Autoencoder(nn.Module):
    def __init__(self, code=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(1, 8, 3, 2, 1), nn.LeakyReLU(0.1), nn.Conv2d(8, 8, 3, 2, 1))
        self.code, self.back = nn.Linear(8 * 4 * 4, code), nn.Linear(code, 8 * 4 * 4)
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(8, 8, 2, 2), nn.LeakyReLU(0.1), nn.ConvTranspose2d(8, 1, 2, 2)
        )

    def forward(self, image):
        code = self.code(self.encoder(image).flatten(1))
        return torch.sigmoid(self.decoder(self.back(code).view(-1, 8, 4, 4)))


def autoencoder(samples):
    """Bars of any place and width are to come out again."""
    image = torch.zeros(samples, 1, 16, 16)
    for i in range(samples):
        begin, width = torch.randint(1, 8, (2,)).tolist()
        image[i, 0, :, begin : begin + width] = 1
    return Task(Autoencoder(), {"image": image}, {"target": image}, nn.MSELoss())


class Siamese(nn.Module):
    """One network sees both images."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 8, 3, 2, 1), nn.Tanh(), nn.Conv2d(8, 8, 3, 2, 1), nn.Flatten(), nn.Linear(128, 4)
        )

    def forward(self, left, right):
        return F.pairwise_distance(self.net(left), self.net(right))


def contrast(distance, same):
    """Hadsell, Chopra & LeCun, "Dimensionality Reduction by Learning an Invariant Mapping", CVPR 2006."""
    return (same * distance**2 + (1 - same) * F.relu(1 - distance) ** 2).mean()


def siamese(samples):
    """Pairs of noisy stripes are of one direction or of two."""
    ways = torch.randint(0, 2, (2, samples))
    stripes = (torch.arange(16) // 2 % 2).float().expand(16, 16)
    sides = [torch.stack([stripes.T if way else stripes for way in side])[:, None] for side in ways]
    left, right = (side + 0.3 * torch.randn(samples, 1, 16, 16) for side in sides)
    same = (ways[0] == ways[1]).float()
    return Task(Siamese(), {"left": left, "right": right}, {"same": same}, contrast)


class Gru(nn.Module):
    """Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder for Statistical Machine
    Translation", EMNLP 2014: the cell, called once for each step of a sequence."""

    def __init__(self, width=12):
        super().__init__()
        self.width, self.of_x, self.of_h = width, nn.Linear(2, 3 * width), nn.Linear(width, 3 * width)
        self.head = nn.Linear(width, 1)

    def forward(self, sequence):
        h = sequence.new_zeros(len(sequence), self.width)
        for x in sequence.unbind(1):
            reset, update, new = self.of_x(x).chunk(3, 1)
            h_reset, h_update, h_new = self.of_h(h).chunk(3, 1)
            update = torch.sigmoid(update + h_update)
            new = torch.tanh(new + torch.sigmoid(reset + h_reset) * h_new)
            h = (1 - update) * new + update * h
        return self.head(h).squeeze(1)


def gru(samples, length=6):
    """The sum of the numbers that are marked."""
    numbers, marks = torch.rand(samples, length), torch.randint(0, 2, (samples, length)).float()
    sequence = torch.stack([numbers, marks], 2)
    return Task(Gru(), {"sequence": sequence}, {"sum": (numbers * marks).sum(1)}, nn.MSELoss())


class Siren(nn.Module):
    """Sitzmann et al., "Implicit Neural Representations with Periodic Activation Functions", NeurIPS 2020."""

    def __init__(self, width=32, frequency=6.0):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, width), nn.Linear(width, width), nn.Linear(width, 1)])
        self.frequency = frequency
        for i, layer in enumerate(self.layers):
            bound = math.sqrt(6 / layer.in_features) / frequency if i else 1 / layer.in_features
            nn.init.uniform_(layer.weight, -bound, bound)

    def forward(self, place):
        for layer in self.layers[:-1]:
            place = torch.sin(self.frequency * layer(place))
        return self.layers[-1](place)


def siren(samples):
    """A picture: brightness at a place."""
    place = 2 * torch.rand(samples, 2) - 1
    value = torch.cos(5 * place[:, :1]) * torch.sin(3 * place[:, 1:])
    return Task(Siren(), {"place": place}, {"value": value}, nn.MSELoss())


class Points(nn.Module):
    """Qi, Su, Mo & Guibas, "PointNet: Deep Learning on Point Sets for 3D Classification and Segmentation",
    CVPR 2017: each point is seen by one network, and the largest numbers over the points count."""

    def __init__(self, classes=3):
        super().__init__()
        self.each = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 24), nn.LayerNorm(24))
        self.head = nn.Sequential(nn.Linear(24, 16), nn.ReLU(), nn.Linear(16, classes))

    def forward(self, points):
        return self.head(self.each(points).max(1).values)


def points(samples):
    """Balls, cubes, and lines."""
    shape, points = torch.arange(samples) % 3, torch.randn(samples, 32, 3)
    points[shape == 0] = F.normalize(points[shape == 0], dim=2)
    points[shape == 1] = points[shape == 1].clamp(-1, 1)
    points[shape == 2, :, 1:] *= 0.1
    return Task(Points(), {"points": points}, {"shape": shape}, nn.CrossEntropyLoss(label_smoothing=0.1))


class Tuned(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU()
        )
        self.head = nn.Linear(16, classes)

    def forward(self, image):
        return self.head(self.backbone(image).mean((2, 3)))


def tuned(samples):
    """The backbone stays as it is, and so do its batch norm's statistics."""
    module = Tuned()
    module.backbone.requires_grad_(False).eval()
    kind = torch.arange(samples) % 4
    image = torch.randn(samples, 3, 16, 16) + kind.view(-1, 1, 1, 1) / 2
    return Task(module, {"image": image}, {"kind": kind}, nn.CrossEntropyLoss())


class TwoHeads(nn.Module):
    """Has two inputs, one of them of whole numbers, and two outputs, each with a loss of its own."""

    def __init__(self):
        super().__init__()
        self.body, self.kind, self.size = nn.Linear(12, 16), nn.Linear(16, 4), nn.Linear(16, 1)

    def forward(self, x, known):
        code = torch.tanh(self.body(x * known))
        return self.kind(code), self.size(code).squeeze(1)


def two_heads(samples):
    """Some numbers of each sample are not known."""
    kind, known = torch.arange(samples) % 4, torch.randint(0, 2, (samples, 12))
    x = torch.randn(samples, 12) + kind[:, None]
    losses = [nn.CrossEntropyLoss(), (nn.MSELoss(), 0.5)]
    return Task(TwoHeads(), {"x": x, "known": known}, {"kind": kind, "size": x.norm(dim=1)}, losses)


class Windows(nn.Module):
    """Liu et al., "Swin Transformer: Hierarchical Vision Transformer using Shifted Windows", ICCV 2021:
    patches attend to those of their window, with a bias by their distance. Windows are among the samples."""

    def __init__(self, classes=4, width=16, side=4, heads=2):
        super().__init__()
        self.side, self.heads = side, heads
        self.patches, self.norm = nn.Conv2d(3, width, 2, 2), nn.LayerNorm(width)
        self.qkv, self.head = nn.Linear(width, 3 * width), nn.Linear(width, classes)
        self.bias = nn.Parameter(0.1 * torch.randn((2 * side - 1) ** 2, heads))
        place = torch.cartesian_prod(torch.arange(side), torch.arange(side))
        apart = place[:, None] - place + side - 1
        self.register_buffer("distance", apart[..., 0] * (2 * side - 1) + apart[..., 1], persistent=False)

    def forward(self, image):
        x = torch.roll(self.patches(image).permute(0, 2, 3, 1), (-2, -2), (1, 2))
        n, h, w, c = x.shape
        x = x.view(n, h // self.side, self.side, w // self.side, self.side, c).permute(0, 1, 3, 2, 4, 5)
        windows = self.norm(x.reshape(-1, self.side**2, c))
        qkv = self.qkv(windows).view(*windows.shape[:2], 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = qkv[0] @ qkv[1].transpose(-2, -1) / 3 + self.bias[self.distance].permute(2, 0, 1)
        windows = windows + (scores.softmax(-1) @ qkv[2]).transpose(1, 2).reshape(windows.shape)
        return self.head(windows.view(n, -1, c).mean(1))


def windows(samples):
    kind = torch.arange(samples) % 4
    image = torch.randn(samples, 3, 16, 24) + kind.view(-1, 1, 1, 1) / 2
    return Task(Windows(), {"image": image}, {"kind": kind}, nn.CrossEntropyLoss())


class Sentences(nn.Module):
    """Vaswani et al., "Attention Is All You Need", NeurIPS 2017: words attend to words. Zeros pad sentences,
    which the model finds in the numbers of the words."""

    def __init__(self, words=20, classes=4, width=16, heads=2):
        super().__init__()
        self.words, self.norm = nn.Embedding(words, width, padding_idx=0), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.head = nn.Linear(width, classes)

    def forward(self, text):
        there = text != 0
        x = self.words(text)
        x = self.norm(x + self.attention(x, x, x, key_padding_mask=~there, need_weights=False)[0])
        there = there.unsqueeze(-1).float()
        return self.head((x * there).sum(1) / there.sum(1))


def sentences(samples):
    kind = torch.arange(samples) % 4
    text = torch.randint(1, 11, (samples, 12)) + 3 * kind[:, None]
    text[torch.arange(12) >= torch.randint(3, 13, (samples, 1))] = 0
    return Task(Sentences(), {"text": text}, {"kind": kind}, nn.CrossEntropyLoss())


NETWORKS = {
    f.__name__: f
    for f in (autoencoder, gru, points, sentences, siamese, siren, tuned, two_heads, unet, windows)
}


def write(task, folder, data):
    """Writes the network and its data, and returns the options of `antichain train` that read them."""
    antichain.from_torch(task.module, task.inputs, task.loss, folder, task.targets)
    with h5py.File(data, "w") as file:
        for name, tensor in {**task.inputs, **task.targets}.items():
            test = len(tensor) // 4
            file[f"test/{name}"], file[f"train/{name}"] = tensor[:test].numpy(), tensor[test:].numpy()
    return {
        "graph": folder,
        "dataset": f"hdf5:{data}",
        "inputs": ",".join(task.inputs),
        "targets": ",".join(task.targets),
    }


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in NETWORKS:
        sys.exit(f"{__doc__}\nthe networks are {', '.join(NETWORKS)}")
    name = sys.argv[1]
    torch.manual_seed(1)
    options = write(NETWORKS[name](samples=128), f"{name}.antichain", f"{name}.h5")
    antichain.run("check", graph=options["graph"])
    options |= {"local": 2, "batch": 32, "microbatches": 4, "epochs": 20, "lr": 0.05, "weight_decay": 0}
    words = [f"--{key.replace('_', '-')} {value}" for key, value in options.items()]
    print("antichain train", *words)
    antichain.run("train", **options)
