"""antichain.from_torch reads networks whose code puts windows, heads or positions among the samples."""

import os
import unittest

import torch
import torch.nn.functional as F
from torch import nn

import antichain
from attention_test import Case

try:
    import torchvision
except ImportError:
    torchvision = None

SIDE, WIDTH, HEADS, WINDOW = 8, 8, 2, 4
TOKENS = WINDOW * WINDOW


def in_windows(x):
    n, h, w, c = x.shape
    x = x.view(n, h // WINDOW, WINDOW, w // WINDOW, WINDOW, c)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, WINDOW, WINDOW, c)


def as_image(windows, n):
    x = windows.view(n, SIDE // WINDOW, SIDE // WINDOW, WINDOW, WINDOW, -1)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(n, SIDE, SIDE, -1)


def hidden():
    """Returns which tokens of a window do not see each other where the image was shifted."""
    parts = torch.zeros(1, SIDE, SIDE, 1)
    for i, rows in enumerate((slice(0, 4), slice(4, 6), slice(6, 8))):
        parts[:, rows] = i
    parts = in_windows(parts).view(-1, TOKENS)
    return (parts[:, None] != parts[:, :, None]) * -100.0


def shifted(m, x):
    """Does what the block of Swin does."""
    windows = in_windows(torch.roll(x, (-2, -2), (1, 2))).view(-1, TOKENS, WIDTH)
    total = len(windows)
    qkv = m.qkv(m.norm(windows)).reshape(total, TOKENS, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
    q, k, v = qkv[0] * 0.5, qkv[1], qkv[2]
    bias = m.table[m.places.view(-1)].view(TOKENS, TOKENS, HEADS).permute(2, 0, 1).contiguous()
    scores = (q @ k.transpose(-2, -1)) + bias.unsqueeze(0)
    mask = hidden()
    scores = scores.view(total // len(mask), len(mask), HEADS, TOKENS, TOKENS) + mask[None, :, None]
    weights = scores.view(-1, HEADS, TOKENS, TOKENS).softmax(-1)
    y = (weights @ v).transpose(1, 2).reshape(total, TOKENS, WIDTH)
    return torch.roll(as_image(y, len(x)), (2, 2), (1, 2))


def masked_as_a_whole(m, x):
    """Adds a mask that has a row for each window of each sample."""
    windows = in_windows(x).view(-1, TOKENS, WIDTH)
    mask = hidden().repeat(len(windows) // 4, 1, 1) + m.table[m.places][..., 0]
    scores = (windows @ windows.transpose(1, 2)) / 3 + mask
    return as_image(scores.softmax(-1) @ windows, len(x))


def heads(m, x):
    """Has the heads among the samples, behind the positions, as nn.MultiheadAttention has them."""
    n = len(x)
    x = x.flatten(1, 2).transpose(0, 1)
    q, k, v = (part.reshape(-1, n * HEADS, WIDTH // HEADS).transpose(0, 1) for part in m.qkv(x).chunk(3, -1))
    y = torch.bmm(torch.softmax(torch.bmm(q, k.transpose(1, 2)) / 2, -1), v)
    return y.transpose(0, 1).contiguous().view(-1, n, WIDTH).transpose(0, 1).view(n, SIDE, SIDE, WIDTH)


def time_first(m, x):
    """Has the samples behind the positions, as PyTorch's recurrent layers and transformers do."""
    x = x.flatten(1, 2).transpose(0, 1)
    y = m.norm(x + m.places_of_time) * x.softmax(0) + (x - x.mean(0, keepdim=True)).cumsum(0)
    y = torch.cat([y, m.qkv(y)[:3, :, :WIDTH]])[3:] / (y.norm(dim=(0, 2), keepdim=True) + 1)
    return torch.stack([y[:8], y[8:16]]).sum(0).transpose(0, 1)[:, :, None]


def units(m, x):
    """Orders tokens by units, as Hiera does, and takes the largest of each."""
    n = len(x)
    x = x.view(n, 4, 2, 4, 2, WIDTH).permute(0, 2, 4, 1, 3, 5).reshape(n * 4, 2, 2, 2, 2, WIDTH)
    x = x.permute(0, 2, 4, 1, 3, 5).reshape(n, 4 * 4 * 4, WIDTH)
    y = torch.tanh(m.line(x)).view(n, 4, -1, WIDTH).amax(1)
    return (y + F.adaptive_max_pool1d(x.transpose(1, 2), 1).transpose(1, 2)).view(n, 4, 4, WIDTH)


def positions(m, x):
    """Computes each position, or each column, by itself."""
    y = m.batch_norm(torch.tanh(x).reshape(-1, WIDTH))
    y = m.prelu(y).split(4, 1)
    y = torch.cat([y[1], y[0] * 2], dim=1).view(-1, SIDE, WIDTH)
    y = F.normalize(y - y.mean(1, keepdim=True), dim=1) + y[:, :1] + y.select(1, 3)[:, None]
    return torch.stack([y, y.flip(1)]).sum(0).view_as(x) + F.pad(y, (0, 0, 1, 1))[:, 1:-1].reshape(x.shape)


def parts(m, x):
    """Changes parts of tensors in place."""
    y = torch.zeros_like(x)
    y[:, 1:4, 2] = m.line(x[:, 1:4, 3])
    y[:, 5:] = 0.5
    y[:, 5:, :, 1] += x[:, 5:, :, 0]
    y[..., 2:4].mul_(3) if hasattr(torch, "export") else None
    bias = m.line.bias.clone()
    bias[2:5].zero_()
    return (y + x) * bias


def local(m, x):
    """Convolves and pools windows, and sizes and repeats images."""
    y = in_windows(x).permute(0, 3, 1, 2)
    y = torch.cat([F.max_pool2d(m.conv(y), 2), m.strided(y)], 1)
    y = as_small_image(y.permute(0, 2, 3, 1), len(x)).permute(0, 3, 1, 2)
    y = F.interpolate(y, (7, 5), mode="bicubic")
    grid = F.interpolate(m.grid, (7, 5), mode="bicubic", align_corners=True).repeat(1, 2, 1, 1)
    return (y.repeat(1, 1, 2, 1)[:, :, 3:10] + grid).permute(0, 2, 3, 1)


def as_small_image(windows, n):
    return windows.view(n, 2, 2, 2, 2, -1).permute(0, 1, 3, 2, 4, 5).reshape(n, 4, 4, -1)


class Net(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f, self.embed, self.head = f, nn.Linear(3, WIDTH), nn.Linear(WIDTH, 5)
        self.qkv, self.line = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.batch_norm, self.prelu = nn.BatchNorm1d(WIDTH), nn.PReLU(WIDTH)
        self.conv, self.strided = nn.Conv2d(8, 4, 3, padding=1), nn.Conv2d(8, 4, 3, 2, 1, groups=2)
        self.places_of_time = nn.Parameter(torch.randn(SIDE * SIDE, 1, WIDTH))
        self.table, self.grid = nn.Parameter(torch.randn(7, HEADS)), nn.Parameter(torch.randn(1, 4, 3, 3))
        self.register_buffer("places", torch.arange(TOKENS * TOKENS).view(TOKENS, TOKENS) % 7)

    def forward(self, x):
        return self.head(self.f(self, self.embed(x.permute(0, 2, 3, 1))).mean((1, 2)))


def window_major(m, x):
    """Repeats what is computed of samples beside their windows, as GCViT does: it mixes samples."""
    windows = in_windows(x).view(-1, TOKENS, WIDTH)
    q = m.line(x[:, :4, :4].reshape(len(x), TOKENS, WIDTH))
    return as_image(windows + q.repeat(4, 1, 1), len(x))


class Windows(Case):
    def test_they_give_the_numbers_of_pytorch(self):
        for f in (shifted, masked_as_a_whole, heads, time_first, units, positions, parts, local):
            with self.subTest(f.__name__):
                torch.manual_seed(1)
                graph = self.write(Net(f), torch.randn(3, 3, SIDE, SIDE))
                fused = any(node["op"] == "attention" for node in graph["nodes"])
                self.assertEqual(fused, f is heads)
                antichain.run("check", graph=self.folder / "net.antichain")

    def test_what_mixes_samples_is_refused(self):
        mixed = lambda m, x: x.transpose(0, 1).reshape(x.shape)
        for f, said in ((window_major, "different axes"), (mixed, "mixes samples")):
            with self.assertRaisesRegex(antichain.AntichainError, said):
                self.write(Net(f), torch.randn(3, 3, SIDE, SIDE))

    @unittest.skipUnless(torchvision and os.environ.get("ANTICHAIN_LARGE_TESTS"), "large")
    def test_of_torchvision(self):
        swin, models = torchvision.models.swin_transformer, torchvision.models
        second = {"block": swin.SwinTransformerBlockV2, "downsample_layer": swin.PatchMergingV2}
        sizes = [[4, 4], 24, [2, 2], [3, 6], [4, 4]]
        maxvit = ((64, 64), 16, 4, [16, 32], [1, 1], 16, 0.1)
        made = {
            "swin": (lambda: swin.SwinTransformer(*sizes, num_classes=5), 40),
            "swin_v2": (lambda: swin.SwinTransformer(*sizes, num_classes=5, **second), 40),
            "maxvit": (lambda: models.maxvit.MaxVit(*maxvit, num_classes=5), 64),
        }
        for name, (make, side) in made.items():
            with self.subTest(name):
                torch.manual_seed(1)
                self.write(make(), torch.randn(2, 3, side, side))


if __name__ == "__main__":
    unittest.main()
