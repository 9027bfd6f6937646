"""This module has three models in plain PyTorch, written as users write them: functions, loops over lists of
modules, and arithmetic with shapes."""

import torch
import torch.nn.functional as F
from torch import nn


def drop_path(x, drop, training):
    """Stochastic depth, as it is often written by hand."""
    if drop == 0 or not training:
        return x
    kept = x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(1 - drop)
    return x * kept.div_(1 - drop)


class Gated(nn.Module):
    """Channels are split, shuffled, gated and joined again."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding="same", bias=False)
        self.norm = nn.BatchNorm2d(16, eps=1e-3, momentum=0.03)
        self.blocks = nn.ModuleList(nn.Conv2d(8, 8, 3, padding=1) for _ in range(3))
        self.squeeze, self.excite = nn.Linear(16, 4), nn.Linear(4, 16)
        self.scale = nn.Parameter(torch.full((16, 1, 1), 0.5))
        self.down = nn.Conv2d(16, 24, 3, stride=2)
        self.head = nn.Linear(24 * 4, 10)

    def forward(self, x, gated=True):
        n, c, h, w = x.shape
        x = F.relu_(self.norm(self.stem(x)))
        a, b = x.chunk(2, dim=1)
        for i, block in enumerate(self.blocks):
            b = b + drop_path(F.silu(block(b)), 0.1 * i, self.training)
        x = torch.cat([a, b], 1)
        x = x.view(n, 2, x.size(1) // 2, h, w).transpose(1, 2).reshape(n, -1, h, w)
        if gated:
            gate = self.excite(F.hardswish(self.squeeze(x.mean((2, 3))))).sigmoid()
            x = x * gate.view(n, -1, 1, 1).expand_as(x) * self.scale
        x = self.down(F.pad(x, (0, 1, 0, 1)))
        x = F.interpolate(x, size=(x.shape[2] // 2, x.shape[-1] // 2), mode="bilinear", align_corners=False)
        x = torch.flatten(F.adaptive_avg_pool2d(x, 2), 1)
        return F.log_softmax(self.head(F.dropout(x, 0.2, self.training)), dim=1)


class Mixer(nn.Module):
    """Tolstikhin et al., "MLP-Mixer: An all-MLP Architecture for Vision", NeurIPS 2021: rows of numbers, N x
    L x C."""

    def __init__(self, width=24, side=4, depth=2):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 4, 4)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * depth))
        self.between = nn.ModuleList(nn.Linear(side * side, side * side) for _ in range(depth))
        self.wide = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(depth))
        self.narrow = nn.ModuleList(nn.Linear(2 * width, width, bias=False) for _ in range(depth))
        self.group = nn.GroupNorm(4, width)
        self.head = nn.Linear(width, 7)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        for i in range(len(self.between)):
            x = x + self.between[i](self.norms[2 * i](x).transpose(1, 2)).transpose(1, 2)
            x = x + self.narrow[i](F.gelu(self.wide[i](self.norms[2 * i + 1](x)), approximate="tanh"))
        return self.head(self.group(x.transpose(1, 2)).mean(-1))


class Branches(nn.Module):
    """Branches of images of two sizes, with an auxiliary output."""

    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(True))
        self.b = nn.Sequential(
            nn.Conv2d(8, 16, 3, 2, 1),
            nn.Hardswish(),
            nn.Conv2d(16, 16, 3, padding=(1, 2), dilation=(1, 2), groups=4),
            nn.Identity(),
        )
        self.up, self.repeat = nn.ConvTranspose2d(16, 8, 2, 2), nn.Upsample(scale_factor=2, mode="nearest")
        self.mix = nn.Conv2d(32, 5, 1)
        self.norm = nn.BatchNorm1d(5)
        self.fc = nn.Linear(10, 6)
        self.auxiliary = nn.Linear(16, 6)

    def forward(self, x):
        a = self.a(x)
        b = F.relu6(self.b(a))
        y = torch.cat((a[:, ::2], a[:, 4:], self.up(b), self.repeat(b)), dim=1)
        y = F.softmax(self.mix(y), dim=1)
        z = F.adaptive_max_pool2d(F.avg_pool2d(y, 4, ceil_mode=True, count_include_pad=False), 1)
        z = self.norm(z.squeeze(-1).squeeze(-1))
        out = self.fc(torch.stack([z, F.relu(z)], dim=2).flatten(1))
        return {"out": out, "auxiliary": self.auxiliary(b.mean([2, 3]))} if self.training else out


class Siamese(nn.Module):
    """Both halves of an image go through the same layers."""

    def __init__(self):
        super().__init__()
        self.twin = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(256, 12))
        self.fc = nn.Linear(12, 5)

    def forward(self, x):
        return self.fc((self.twin(x[..., :4]) - self.twin(x[..., 4:])).abs())


class UnrolledGru(nn.Module):
    """Reads images row by row with a cell written by hand."""

    def __init__(self):
        super().__init__()
        self.input, self.state, self.fc = nn.Linear(24, 18), nn.Linear(6, 18), nn.Linear(6, 5)

    def forward(self, x):
        h = torch.tanh(self.input(x[:, :, 0].flatten(1)).chunk(3, 1)[2])
        for t in range(1, x.shape[2]):
            i, s = self.input(x[:, :, t].flatten(1)).chunk(3, 1), self.state(h).chunk(3, 1)
            reset, keep = torch.sigmoid(i[0] + s[0]), torch.sigmoid(i[1] + s[1])
            fresh = torch.tanh(i[2] + reset * s[2])
            h = fresh + keep * (h - fresh)
        return self.fc(h)


class Made(nn.Module):
    """Computes with tensors that its code makes while it runs, and with a buffer that no file has."""

    def __init__(self):
        super().__init__()
        self.conv, self.state, self.head = nn.Conv2d(3, 4, 3), nn.Linear(5, 5), nn.Linear(5, 4)
        self.row = nn.Parameter(torch.randn(1, 5))
        self.register_buffer("places", torch.linspace(-1, 1, 6), persistent=False)

    def forward(self, x):
        x = self.conv(x)
        x = x + self.places[:, None] * torch.arange(6.0, device=x.device).to(x.dtype)
        x = F.pad(F.pad(x, (1, 2, -1, 0), value=0.5), (0, 0, 0, 0, 1, 0))
        bright = (x.mean((2, 3), keepdim=True) > 0.1).float()
        tops = F.max_pool2d(F.pad(x, (1, 1, 1, 1)) * bright.expand(-1, -1, 7, 11), 3)
        h = torch.tanh(self.state(x.new_zeros(len(x), 5)) + torch.zeros_like(tops).sum((2, 3)))
        h = h + self.row.expand(len(x), -1) + tops.amax((2, 3))
        return self.head(torch.cat([h[:, 2:], torch.ones_like(h[:, :2])], 1))


class Tied(nn.Module):
    """Two layers have one weight, by two names, and a bias each."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.fc = nn.Linear(24, 24), nn.Linear(24, 24), nn.Linear(24, 5)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.fc(torch.tanh(self.second(torch.tanh(self.first(x.mean(3).flatten(1))))))


class Window(nn.Module):
    """Tokens attend with a bias by their distance, and one layer has them and their mean."""

    def __init__(self):
        super().__init__()
        self.patches, self.table = nn.Conv2d(3, 8, 2, 2), nn.Parameter(torch.randn(7, 2))
        self.register_buffer("places", torch.arange(256) % 7)
        self.qkv, self.both, self.fc = nn.Linear(8, 24), nn.Linear(8, 8), nn.Linear(8, 5)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)[:, [3, 1, 2, 0, *range(4, 16)]]
        q, k, v = self.qkv(x).reshape(-1, 16, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(2, 3) + self.table[self.places].view(16, 16, 2).permute(2, 0, 1)
        x = self.both(x + (scores.softmax(3) @ v).transpose(1, 2).reshape(x.shape))
        return self.fc(self.both(x.mean(1)))
