"""antichain.from_torch writes what PyTorch computes, and refuses what it can't translate."""

import functools
import itertools
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

import numpy
import torch
import torch.nn.functional as F
import torch.nn.utils.prune
import torch.utils.checkpoint
from torch import nn

import antichain
import graph_run
import modules
from antichain import safetensors
from in_a_folder import InAFolder

try:
    import torchvision
except ImportError:
    torchvision = None

MODELS = ["googlenet", "mobilenet_v3_small", "shufflenet_v2_x0_5", "squeezenet1_1"]
if os.environ.get("ANTICHAIN_LARGE_TESTS"):
    MODELS += ["densenet121", "efficientnet_b0", "regnet_y_400mf", "resnet18"]
HERE = pathlib.Path(__file__).name


def ties(m, x):
    """Equal numbers of different origin: amax divides the gradient among them, max gives it to the first."""
    y = torch.stack([x * m.ones, x * m.other_ones, torch.max(x * m.other_ones, x)], 1)
    return y.amax(1) + 2 * y.amin((1, 4))[..., None] + 3 * y.max(1)[0] + 4 * y.min(1)[0]


FORMULAS = {
    "abs": lambda m, x: x.abs() + abs(m.other(x)),
    "amax": lambda m, x: x * x.amax((2, 3), keepdim=True) + x.max(3, keepdim=True)[0],
    "celu": lambda m, x: F.celu(x, 0.7),
    "clamp": lambda m, x: x.clamp(-0.3, 0.4) + x.clamp(max=0.2) + F.hardtanh(x),
    "compare": lambda m, x: torch.where(x > 0.1, m.other(x), -x.square()) * (x <= 0.2),
    "divide": lambda m, x: x / 3 + 1 / (x * x + 2) - x / (m.other(x).exp() + 1),
    "elu": lambda m, x: F.elu(x, 0.5) + F.selu(x),
    "exponential": lambda m, x: torch.exp(x) + torch.expm1(x) + (x.square() + 1).log() + torch.log1p(x * x),
    "gate": lambda m, x: x * torch.sigmoid(m.gate(x)),
    "instance_norm": lambda m, x: torch.tanh(m.norm(x)),
    "l2": lambda m, x: x * x.norm(p=2, dim=(2, 3), keepdim=True) / (x.std((1, 2, 3), keepdim=True) + 1),
    "leaky_relu": lambda m, x: F.leaky_relu(x, 0.1) + m.prelu(x) + m.prelu_of_channels(x),
    "maximum": lambda m, x: torch.maximum(x, m.other(x)) - torch.minimum(x, 0.5 * x),
    "mish": lambda m, x: F.mish(x) + F.softplus(x, beta=2) + F.logsigmoid(x),
    "order": lambda m, x: (x.permute(0, 2, 3, 1) * 2 - m.row).permute(0, 3, 1, 2),
    "pad": lambda m, x: F.pad(F.pad(x, (2, 1, 1, 2), mode="reflect"), (1, 2, 0, 1), mode="replicate"),
    "pixel_shuffle": lambda m, x: torch.cat([F.pixel_shuffle(x, 2)] * 4, 1),
    "powers": lambda m, x: x**2 + (x**2 + 1) ** 0.5 + (x.abs() + 1) ** -1 + x**3 + (x * x + 1) ** m.other(x),
    "rezero": lambda m, x: x + m.scalar * m.other(x) + m.factors * x + m.plane,
    "roll": lambda m, x: torch.roll(x, (1, -2), (2, 3)),
    "shrink": lambda m, x: F.softshrink(x, 0.1) + F.hardshrink(x, 0.2) + F.tanhshrink(x),
    "threshold": lambda m, x: F.threshold(x, 0.1, 2.0),
    "subtract": lambda m, x: 1 - x - (-x) + torch.sub(x, m.other(x), alpha=3),
    "sum": lambda m, x: x - x.sum((2, 3), keepdim=True) / 7 + x.var(1, keepdim=True),
    "ties": ties,
    "tanh": lambda m, x: torch.tanh(x) + torch.sin(x) * torch.cos(x) + F.softsign(x) + torch.rsqrt(x * x + 1),
}


def attention(m, x):
    q, k, v = m.qkv(x.flatten(2).transpose(1, 2)).reshape(len(x), -1, 3, 2, 4).permute(2, 0, 3, 1, 4)
    y = torch.softmax(q @ k.transpose(-2, -1) / 2, -1) @ v
    return y.transpose(1, 2).reshape(len(x), -1, 8).transpose(1, 2).reshape(x.shape)


# What is computed of several tensors, or of parameters alone.
PRODUCTS = {
    "attention": attention,
    "batch_norm": lambda m, x: m.not_affine(x) + F.log_softmax(x, 1),
    "dropout": lambda m, x: F.dropout2d(x, 0.2, m.training),
    "einsum": lambda m, x: torch.einsum("nchw,nchv->nwvh", x, m.other(x)).permute(0, 3, 1, 2)
    + torch.einsum("nchw,dc->ndhw", x, m.mixer[:, :, 0, 0])[:, :6, :1],
    "eye": lambda m, x: torch.bmm(x.flatten(2), x.flatten(2).mT)[:, :, :, None] * torch.tensor(0.5),
    "factors": lambda m, x: x * m.row.view(1, -1, 1, 1) + m.plane.exp() * m.plane.softmax(0).mean(),
    "gather": lambda m, x: x[:, [0, 2, 1, 3, 4, 5, 7, 6]] + x.flip(3) + F.normalize(x, dim=1),
    "low_rank": lambda m, x: F.conv2d(x, m.other.weight + (m.b @ m.a)[:, :, None, None], m.other.bias),
    "norms": lambda m, x: x / (x.norm(1, (1, 2), True) + x.norm(torch.inf, 3, True)) + x.amin((2, 3), True),
    "products": lambda m, x: torch.matmul(m.plane, x.transpose(2, 3)) @ (x @ m.plane_too.t()),
    "pruning": lambda m, x: m.pruned(x),
    "scaled": lambda m, x: (x - m.shift) / m.spread,
    "spectral_norm": lambda m, x: m.spectral(x) + m.spectral_turned(x)[:, :, :6, :8],
    "standardised": lambda m, x: F.conv2d(
        x, (m.other.weight - m.other.weight.mean((1, 2, 3), True)) / m.other.weight.std((1, 2, 3), True, True)
    ),
    "std_conv": lambda m, x: F.conv2d(x, F.batch_norm(
        m.other.weight.reshape(1, 8, -1), None, None, m.row * 0.7, training=True, momentum=0.0
    ).reshape_as(m.other.weight)),
    "variance": lambda m, x: (lambda v, mean: (x - mean) / (v + 1e-5).sqrt())(
        *torch.var_mean(x, (1, 2), keepdim=True)
    ),
    "weight_norm": lambda m, x: m.weight_norm(x),
}  # fmt: skip


class Product(nn.Module):
    def __init__(self, f):
        super().__init__()
        norms = nn.utils
        self.f, self.first, self.head = f, nn.Conv2d(3, 8, 3, 1, 1), nn.LazyLinear(5)
        self.other, self.qkv = nn.Conv2d(8, 8, 1), nn.Linear(8, 24)
        self.not_affine = nn.BatchNorm2d(8, affine=False)
        self.a, self.b = nn.Parameter(torch.rand(2, 8)), nn.Parameter(torch.rand(8, 2))
        self.row, self.plane = nn.Parameter(torch.rand(8)), nn.Parameter(torch.rand(6, 8))
        self.plane_too, self.mixer = nn.Parameter(torch.rand(6, 8)), nn.Parameter(torch.rand(8, 8, 1, 1))
        self.pruned = torch.nn.utils.prune.l1_unstructured(nn.Conv2d(8, 4, 3), "weight", 0.4)
        self.spectral = norms.spectral_norm(nn.Conv2d(8, 8, 3, padding=1))
        self.spectral_turned = norms.parametrizations.spectral_norm(
            nn.ConvTranspose2d(8, 8, 2), n_power_iterations=2
        )
        self.weight_norm = norms.weight_norm(nn.Conv2d(8, 6, (1, 3), groups=2))
        self.register_buffer("shift", torch.randn(8, 1, 1))
        self.register_buffer("spread", torch.rand(1, 8, 1, 1) + 0.5)

    def forward(self, x):
        return self.head(self.f(self, self.first(x)).mean(-1).flatten(1))


class Lines(nn.Module):
    """Convolutions, pools and norms in one dimension, and the largest numbers over points."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            *(nn.Conv1d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm1d(8), nn.ReLU()),
            nn.MaxPool1d(2, ceil_mode=True),
            *(nn.Conv1d(8, 8, 5, padding="same", groups=2, dilation=2), nn.AvgPool1d(3, 1, 1), nn.Tanh()),
            nn.ConvTranspose1d(8, 8, 4, 2, 1, bias=False),
            nn.Conv1d(8, 8, 3, padding=1, padding_mode="reflect", bias=False),
            *(nn.AdaptiveMaxPool1d(3), nn.Dropout1d(0.1), nn.InstanceNorm1d(8), nn.GroupNorm(2, 8)),
            *(nn.Upsample(scale_factor=2, mode="linear"), nn.Upsample(8), nn.AdaptiveAvgPool1d(5)),
        )
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        return self.head(self.net(F.pad(x, (2, 1))).max(2)[0])


class Formula(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f, self.first, self.head = f, nn.Conv2d(3, 8, 3, 1, 1), nn.Linear(8, 5)
        self.other = nn.Conv2d(8, 8, 1)
        self.gate, self.norm = nn.Conv2d(8, 1, 1), nn.InstanceNorm2d(8, affine=True)
        self.prelu, self.prelu_of_channels = nn.PReLU(), nn.PReLU(8)
        self.scalar, self.factors = nn.Parameter(torch.tensor(0.3)), nn.Parameter(torch.rand(1, 8, 1, 1))
        self.row, self.plane = nn.Parameter(torch.rand(8)), nn.Parameter(torch.rand(6, 8))
        self.ones, self.other_ones = (nn.Parameter(torch.ones(8, 1, 1)) for _ in range(2))

    def forward(self, x):
        return self.head(self.f(self, self.first(x)).mean((2, 3)))


def small_convnext():
    block = torchvision.models.convnext.CNBlockConfig
    return torchvision.models.ConvNeXt(
        [block(16, 32, 1), block(32, None, 2)], stochastic_depth_prob=0.1, num_classes=10
    )


def of_torchvision(name):
    options = {"init_weights": False} if name == "googlenet" else {}
    return torchvision.models.get_model(name, weights=None, num_classes=10, **options)


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


class Numbers(Case):
    """The graph and the weights give every number that the user's own model gave."""

    def test_models_in_plain_pytorch(self):
        for make in (modules.Gated, modules.Mixer, modules.Branches):
            with self.subTest(make.__name__):
                self.write(seeded(make), 3, 3, 16, 16)
                graph_run.GraphRun(self.folder).compare()

    def test_tensors_that_the_code_makes_are_constants(self):
        self.write(seeded(modules.Made), 4, 3, 8, 8)
        graph_run.GraphRun(self.folder).compare()
        antichain.run("check", graph=self.folder)
        self.assertNotIn("places", (self.folder / "graph.json").read_text())

    def test_formulas(self):
        """What people compute with tensors, parameters and numbers, with PyTorch's broadcasting."""
        for name, f in FORMULAS.items():
            with self.subTest(name):
                self.write(seeded(lambda: Formula(f)), 3, 3, 6, 8)
                graph_run.GraphRun(self.folder).compare()

    def test_modules_that_are_called_several_times_and_tied_parameters(self):
        for make in (modules.Siamese, modules.UnrolledGru, modules.Tied, modules.Window):
            with self.subTest(make.__name__):
                model, out = seeded(make), self.folder.parent / "out.safetensors"
                self.write(model, 4, 3, 8, 8)
                graph_run.GraphRun(self.folder).compare()
                antichain.run("check", graph=self.folder)
                antichain.run("export", graph=self.folder, out=out)
                state = {n: torch.from_numpy(a) for n, a in safetensors.read(out).items()}
                model.load_state_dict(state, strict=True)
                other = seeded(make)
                for name, tensor in other.state_dict().items():
                    numpy.testing.assert_array_equal(state[name].numpy(), tensor.numpy())
    def test_products_and_computed_weights(self):
        for name, f in PRODUCTS.items():
            with self.subTest(name):
                model = seeded(lambda: Product(f))
                model(torch.randn(3, 3, 6, 8))
                self.write(model, 3, 3, 6, 8)
                graph_run.GraphRun(self.folder).compare()

    def test_one_dimension(self):
        self.write(seeded(Lines), 3, 3, 33)
        graph_run.GraphRun(self.folder).compare()

    def test_a_chain_is_checked_by_the_name_of_its_last_node(self):
        chain = lambda m, x: torch.tanh(x / 3 + 1) * m.scalar - 0.5
        self.write(seeded(lambda: Formula(chain)), 3, 3, 6, 8)
        antichain.run("check", graph=self.folder)

    def test_the_other_outputs_are_auxiliary_losses(self):
        self.write(seeded(modules.Branches), 3, 3, 16, 16, auxiliary=0.3)
        graph_run.GraphRun(self.folder).compare()
        losses = [n for n in self.graph()["nodes"] if n["op"] == "softmax_cross_entropy"]
        self.assertEqual([n["name"] for n in losses], ["loss.auxiliary1", "loss"])
        self.assertEqual(losses[0]["options"], {"weight": 0.3})

    @unittest.skipIf(torchvision is None, "needs python3-torchvision")
    def test_models_of_torchvision(self):
        for make in [small_convnext, *(functools.partial(of_torchvision, name) for name in MODELS)]:
            with self.subTest(str(make)):
                model = seeded(make)
                self.write(model, 2, 3, 64, 64)  # smaller ones increase roundings a million times
                graph_run.GraphRun(self.folder).compare()
                written = safetensors.read(self.folder / "weights.safetensors")
                state = model.state_dict()  # of auxiliary heads, too, which are kept as they are
                self.assertEqual(set(written), set(state))
                for key, tensor in state.items():
                    numpy.testing.assert_array_equal(written[key], tensor.numpy())

    def test_five_steps_are_those_of_the_users_own_training(self):
        model = seeded(modules.Mixer)
        torch.manual_seed(2)
        images, labels = torch.randn(3, 3, 16, 16), torch.tensor([2, 6, 2])
        antichain.from_torch(model, (images,), folder=self.folder, labels=labels)
        check = safetensors.read(self.folder / "check.safetensors")
        model.double().train()
        sgd = torch.optim.SGD(model.parameters(), lr=1e-3)
        for step in range(5):
            loss = F.cross_entropy(model(images.double()), labels)
            # Both add up the same numbers in float64.
            self.assertAlmostEqual(check["losses"][step], loss.item(), places=12)
            sgd.zero_grad()
            loss.backward()
            if step == 0:
                for name, parameter in model.named_parameters():
                    numpy.testing.assert_allclose(
                        check["gradient." + name], parameter.grad.numpy(), rtol=1e-9, atol=1e-12
                    )
            sgd.step()

    def test_the_output_is_the_first_tensor_of_what_is_returned(self):
        class Several(modules.Gated):
            def forward(self, x):
                return "logits", len(x), super().forward(x).double(), None

        self.write(seeded(Several), 3, 3, 16, 16)
        graph_run.GraphRun(self.folder).compare()

    def test_losses(self):
        for options in (
            {"loss": "nll_loss"},
            {"loss": nn.CrossEntropyLoss(label_smoothing=0.1)},
            {"labels": torch.full((3, 10), 0.1)},
        ):
            with self.subTest(str(options)):
                self.write(seeded(modules.Gated), 3, 3, 16, 16, **options)
                graph_run.GraphRun(self.folder).compare()
        self.assertEqual(self.graph()["inputs"][1], {"name": "labels", "shape": [10], "dtype": "float32"})


class Translation(Case):
    def test_the_model_stays_as_it_is(self):
        model = seeded(modules.Branches).eval()
        before = {n: t.clone() for n, t in model.state_dict().items()}
        self.write(model, 2, 3, 16, 16)
        self.assertFalse(model.training)
        for name, tensor in model.state_dict().items():
            self.assertTrue(torch.equal(before[name], tensor), name)

    def test_the_same_model_gives_the_same_bytes(self):
        files = []
        self.folder.mkdir()
        (self.folder / "graph.json").symlink_to(HERE)  # is replaced and not followed
        for _ in range(2):
            self.write(seeded(modules.Gated), 2, 3, 16, 16)
            self.assertFalse((self.folder / "graph.json").is_symlink())
            files.append([(self.folder / f"{f}").read_bytes() for f in ("graph.json", "weights.safetensors")])
        self.assertEqual(*files)

    def test_layer_norm_and_linear_over_the_last_axis_of_an_image_need_no_permutation(self):
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv, self.norm, self.fc = nn.Conv2d(3, 8, 3), nn.LayerNorm(8, 1e-6), nn.Linear(8, 5)

            def forward(self, x):
                x = self.fc(self.norm(self.conv(x).permute(0, 2, 3, 1)))
                return x.permute(0, 3, 1, 2).mean((2, 3))

        self.write(Block(), 2, 3, 8, 8)
        graph_run.GraphRun(self.folder).compare()
        self.assertEqual(
            [n["op"] for n in self.graph()["nodes"]],
            ["conv2d", "layer_norm", "conv2d", "mean", "softmax_cross_entropy"],
        )
        self.assertEqual(self.node("norm")["options"], {"channels": True, "eps": 1e-6})

    def test_who_reads_a_tensor_after_it_was_changed_in_place_reads_the_new_numbers(self):
        def change(self, x):
            alias = x
            x += F.relu(alias)
            return F.silu(alias, inplace=True) + x

        self.write(Net(change), 2, 3, 8, 8)
        graph_run.GraphRun(self.folder).compare()

    def test_options(self):
        self.write(seeded(modules.Gated), 2, 3, 16, 16)
        self.assertEqual(self.node("norm")["options"], {"eps": 1e-3, "momentum": 0.03})
        self.assertEqual(self.node("down")["options"]["pad"], {"before": 0, "after": 1})
        drops = [n["options"] for n in self.graph()["nodes"] if n["op"] == "stochastic_depth"]
        self.assertEqual(drops, [{"p": 0.1, "drop": "row"}, {"p": 0.2, "drop": "row"}])
        self.assertIn("dropout", [n["op"] for n in self.graph()["nodes"]])
        self.assertRegex(self.node("stem")["from"], r"^stem \(Conv2d\), modules.py:\d+$")

    def test_without_a_record(self):
        self.write(seeded(modules.Gated), 2, 3, 16, 16)
        self.write(seeded(modules.Gated), 2, 3, 16, 16, record=False)
        self.assertFalse((self.folder / "check.safetensors").exists())

    def test_a_thousand_nodes_take_seconds(self):
        self.write(Net(lambda self, x: sum((F.relu(x) for _ in range(1000)), x)), 2, 3, 2, 2, record=False)
        self.assertGreater(len(self.graph()["nodes"]), 2000)


class Net(nn.Module):
    """A model around what a test is about: f(self, x), x of N x 8 x 8 x 8."""

    def __init__(self, f, **members):
        super().__init__()
        self.f = f
        self.conv, self.fc = nn.Conv2d(3, 8, 3, padding=1), nn.Linear(8, 4)
        for name, member in members.items():
            setattr(self, name, member)

    def forward(self, x):
        return self.fc(self.f(self, self.conv(x)).mean((2, 3)))


def assign(self, x):
    x[:, 0] = 0
    return x


def change_a_view(self, x):
    x.view(x.shape[0], -1).relu_()
    return x


class Refused(Case):
    def refused(self, model, shape=(2, 3, 8, 8), **options):
        """Returns the sentence that refuses a model."""
        with self.assertRaises(antichain.AntichainError) as caught:
            self.write(model, *shape, **options)
        self.assertNotIn("\n", str(caught.exception))
        self.assertFalse((self.folder / "graph.json").exists())
        return str(caught.exception)

    def refused_each(self, *cases):
        """Each case has parts of the sentence, what is computed, and the model's members."""
        for said, f, members in cases:
            with self.subTest(said):
                found = self.refused(Net(f, **members))
                for part in said.split("|"):
                    self.assertIn(part, found)


class Refusals(Refused):
    """Each is one sentence that names what is wrong, and where."""

    def test_what_is_no_operator(self):
        self.refused_each(
            (
                f"'rrelu' at node act (act (RReLU), {HERE}|the operators are activate (gelu, ",
                lambda self, x: self.act(x),
                {"act": nn.RReLU()},
            ),
            ("'cumsum' at node cumsum (the model (Net), ", lambda self, x: x.cumsum(1), {}),
            (
                "'multi_head_attention_forward' at node a.|(a (MultiheadAttention)",
                lambda self, x: self.a(*[x.flatten(2).transpose(1, 2)] * 3)[0].mT[..., None],
                {"a": nn.MultiheadAttention(8, 2, batch_first=True, add_zero_attn=True)},
            ),
            ("'erfinv' at node erfinv", lambda self, x: torch.erfinv(0.5 * x), {}),
        )

    def test_options_and_shapes_that_no_operator_has(self):
        applied = lambda self, x: self.m(x)
        self.refused_each(
            (
                "max_pool2d with dilation [2, 2] at node m (m (MaxPool2d)",
                applied,
                {"m": nn.MaxPool2d(2, dilation=2)},
            ),
            (
                "which mixes samples",
                lambda self, x: x + x[:, :6].transpose(0, 1).reshape(4, 3, 8, 8).reshape(2, 6, 8, 8)[:, :1],
                {},
            ),
            (
                "a batch norm that is called twice, whose statistics change twice,",
                lambda self, x: self.m(self.m(x)),
                {"m": nn.BatchNorm2d(8)},
            ),
            ("a formula of two parameters", lambda self, x: torch.where(x > 0, self.p, self.q), {
                "p": nn.Parameter(torch.zeros(8, 1, 1)), "q": nn.Parameter(torch.zeros(8, 1, 1))
            }),
        )

    def test_what_a_record_does_not_hold(self):
        self.refused_each(
            (
                f"the numbers of a tensor decide what is computed next|{HERE}",
                lambda self, x: x if x.sum() > 0 else F.relu(x),
                {},
            ),
            ("gives other numbers than the model itself", change_a_view, {}),
            ("", assign, {}),
            ("", lambda self, x: x * torch.rand(2, 1, 1, 1), {}),
            (
                f"AttributeError: 'Net' object has no attribute 'missing'|{HERE}",
                lambda self, x: self.missing(x),
                {},
            ),
        )


class Odd(nn.Module):
    """Names that the program can't read, parameters of the model itself, and tensors that nothing uses."""

    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(8, 3, 3, 3) / 5), nn.Parameter(torch.zeros(8))
        self.kernel = nn.Parameter(torch.randn(8, 8, 1, 1) / 3)
        self.loss, self.images, self.labels = nn.BatchNorm2d(8), nn.Conv2d(8, 8, 1), nn.GroupNorm(2, 8)
        self.layers = nn.ModuleDict({"a b": nn.Conv2d(8, 8, 1), "a/b,c": nn.Conv2d(8, 8, 1)})
        self.add_module("x" * 300, nn.Linear(8, 10))
        self.spare = nn.Sequential(nn.Linear(5, 5), nn.BatchNorm1d(3))
        self.register_buffer("positions", torch.arange(6)[None])
        self.register_buffer("mask", torch.ones(2, 2, dtype=torch.bool))
        self.register_buffer("scalar", torch.tensor(0.5))
        self.register_buffer("passing", torch.ones(3), persistent=False)

    def forward(self, x):
        x = self.loss(F.conv2d(x, self.weight, self.bias))
        x = F.relu(self.layers["a b"](F.relu(self.images(x))))
        x = self.labels(F.conv2d(self.layers["a/b,c"](x), self.kernel))
        return getattr(self, "x" * 300)(x.mean((2, 3)))


class Names(Case):
    def test_what_is_trained_can_be_taken_back_whatever_its_name(self):
        model = seeded(Odd)
        before = {n: t.clone() for n, t in model.state_dict().items()}
        self.write(model, 4, 3, 8, 8)
        graph_run.GraphRun(self.folder).compare()
        antichain.run("check", graph=self.folder)
        check = safetensors.read(self.folder / "check.safetensors")
        file = self.folder / "check.safetensors"
        safetensors.write(file, {**check, "after.kernel": before["kernel"].double().numpy()})
        with self.assertRaisesRegex(
            antichain.AntichainError, "after the steps, the parameter kernel .* differs"
        ):
            antichain.run("check", graph=self.folder)
        old = {n: a for n, a in check.items() if "after." not in n}  # as it was written before
        safetensors.write(
            file, {**old, "losses": old["losses"][:3], "float32_error.losses": old["losses"][:3] / 1e6}
        )
        antichain.run("check", graph=self.folder)
        results, out = self.folder.parent / "results", self.folder.parent / "out.safetensors"
        antichain.run("export", graph=self.folder, out=out)
        for name, array in safetensors.read(out).items():
            numpy.testing.assert_array_equal(array, before[name].numpy())
        with tempfile.TemporaryDirectory() as data:
            batch = bytes(range(256)) * 13  # 8 records of 3,073 bytes beginning with a class, and more
            for name in ("data_batch_1.bin", "test_batch.bin"):
                records = b"".join(bytes([i]) + batch[i : i + 3072] for i in range(8))
                pathlib.Path(data, name).write_bytes(records)
            self.write(model, 4, 3, 32, 32)
            antichain.run("train", graph=self.folder, data_dir=data, batch=8, microbatches=2, steps=2, lr=0.1,
                          profile_seconds=0.01, profile_cache="none", results=results)  # fmt: skip
        antichain.run("export", graph=self.folder, init=results / "weights.h5", out=out)
        trained = {n: torch.from_numpy(a) for n, a in safetensors.read(out).items()}
        model.load_state_dict(trained, strict=True)
        used = {n for n in before if not n.startswith(("spare", "positions", "mask", "scalar"))}
        self.assertEqual(used, {n for n in before if not torch.equal(before[n], model.state_dict()[n])})


def of_modules(change):
    """Returns a function that makes a small model, and changes it."""

    def make():
        model = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.1), nn.Flatten(), nn.Linear(288, 4)
        )
        other = change(model)
        return other if isinstance(other, (int, type, Freezing, torch.jit.ScriptModule)) else model

    return make


class Freezing(nn.Sequential):
    def train(self, mode=True):  # returns nothing, as users forget
        super().train(mode)
        self[0].bias.requires_grad_(not mode)


class Reversed(torch.autograd.Function):
    forward = staticmethod(lambda ctx, x: x.view_as(x))
    backward = staticmethod(lambda ctx, gradient: -gradient)


def without_gradient(self, x):
    with torch.no_grad():
        return self.c(x)


def by_autocast(self, x):
    with torch.autocast("cpu", torch.bfloat16):
        x = self.c(x)
    return x.float()


def counting(self, x):
    self.norm.num_batches_tracked += 1
    return self.norm(x)


def another_buffer(self, x):
    self.norm.running_mean = self.norm.running_mean + 1.0
    return x


def other_each_time(self, x):
    return F.relu(x) if self.draws.random() < 0.5 else x


def other_in_step_three(self, x):
    return x if next(self.counted) < 3 else F.relu(x)


class State(Refused):
    """What would not be trained as PyTorch trains it is refused."""

    def test_the_state_of_modules(self):
        for said, change in {
            "all parameters have requires_grad=False": lambda m: m.requires_grad_(False),
            "3 (Dropout) is in training mode": lambda m: m.eval()[3].train(),
            "1 (BatchNorm2d) has momentum=None": lambda m: setattr(m[1], "momentum", None),
            "without running statistics at node 1": lambda m: m.__setitem__(
                1, nn.BatchNorm2d(8, track_running_stats=False)
            ),
            "the gradient of the parameter 0.weight has a hook": lambda m: m[0].weight.register_hook(abs),
            "0 (Conv2d) has a backward hook": lambda m: m[0].register_full_backward_hook(print),
            "0.weight = 6.weight share memory": lambda m: m.append(nn.Conv2d(3, 8, 3))
            and setattr(m[6], "weight", nn.Parameter(m[0].weight.data[4:])),
            "5.bias is expanded": lambda m: setattr(m[5], "bias", nn.Parameter(torch.ones(1).expand(4))),
            "is a program of torch.jit (give the module": lambda m: torch.jit.script(m),
            "the network's 0.weight is not in": lambda m: m._register_state_dict_hook(
                lambda m, state, *_: state.update({"0.weight": state["0.weight"] / 2})
            ),
            "dropout of 1.0 at node 3": lambda m: setattr(m[3], "p", 1.0),
            "0.bias has numbers that are not finite": lambda m: setattr(m[0].bias, "data", m[0].bias / 0),
            "can't be copied to the CPU": lambda m: m.to("meta"),
            "the model has one class": lambda m: m.__setitem__(5, nn.Linear(288, 1)),
            "not int": lambda m: 3,
            "not the class Linear": lambda m: nn.Linear,
        }.items():
            with self.subTest(said):
                self.assertIn(said, self.refused(of_modules(change)(), record=False))
        self.write(of_modules(lambda m: m.eval())(), 2, 3, 8, 8, record=False)

    def test_what_is_frozen_stays_so(self):
        for change, frozen in (
            (lambda m: m[0].requires_grad_(False), ["0.weight", "0.bias"]),
            (lambda m: [m[1].eval(), m[5].bias.requires_grad_(False)], ["5.bias"]),
            (lambda m: m[:2].requires_grad_(False).eval(), ["0.weight", "0.bias", "1.weight", "1.bias"]),
            (lambda m: m[3].eval(), []),
            (lambda m: Freezing(*m), ["0.bias"]),
        ):
            model = of_modules(change)()
            torch.nn.init.uniform_(model[1].running_var, 0.5, 2)
            self.write(model, 3, 3, 8, 8)
            graph_run.GraphRun(self.folder).compare()
            graph = self.graph()
            self.assertEqual(graph.get("frozen", []), frozen)
            fixed = self.node("1").get("options", {}).get("fixed_statistics", False)
            self.assertEqual(fixed, not model[1].training)
            self.assertEqual("dropout" in [n["op"] for n in graph["nodes"]], model[3].training)
            after = safetensors.read(self.folder / "check.safetensors")
            counted = after["after.1.num_batches_tracked"] == 5
            self.assertEqual(counted, model[1].training)
            antichain.run("check", graph=self.folder)

    def test_what_forward_does_with_gradients_and_tensors(self):
        conv, norm = {"c": nn.Conv2d(8, 8, 1)}, {"norm": nn.BatchNorm2d(8)}
        self.refused_each(
            ("no gradient passes", without_gradient, conv),
            ("detach", lambda self, x: self.c(x).detach(), conv),
            ("", lambda self, x: F.conv2d(x, self.c.weight.data), conv),
            ("float32", by_autocast, conv),
            ("float32", lambda self, x: self.c(x).half().float(), conv),
            ("the autograd Function Reversed", lambda self, x: Reversed.apply(x), {}),
            ("the buffer norm.num_batches_tracked", counting, norm),
            ("norm.running_mean", another_buffer, norm),
            ("", other_each_time, {"draws": random}),
            ("training the model changes", other_in_step_three, {"counted": itertools.count()}),
        )

    def test_hooks_of_the_nodes_that_accumulate_gradients(self):
        held = []  # who adds a hook holds the node, or the hook is gone

        def hooked(add):
            def change(model):
                held.append(model[0].weight.expand_as(model[0].weight).grad_fn.next_functions[0][0])
                getattr(held[-1], add)(lambda *gradients: None)

            return change

        for add in ("register_hook", "register_prehook"):
            said = self.refused(of_modules(hooked(add))(), record=False)
            self.assertIn("the gradient of the parameter 0.weight has a hook", said)
        left = of_modules(lambda m: None)()
        left[0].weight.register_hook(abs).remove()
        self.write(left, 2, 3, 8, 8, record=False)

    def test_what_depends_on_the_number_of_samples(self):
        for samples, said, f in (
            (2, "on 5 samples than on 2: relu at the", lambda self, x: F.relu(x) if x.shape[0] > 4 else x),
            (8, "on 2 samples than on 8: activate at", lambda self, x: x if len(x) > 4 else F.silu(x)),
            (2, "on 5 samples than on 2: relu at the", lambda self, x: F.relu(x) if x.size(0) % 2 else x),
            (8, "on 2 samples than on 8: ", lambda self, x: x.view(8, -1).view(8, 8, 8, 8)),
            (2, "on 5 samples than on 2: ", lambda self, x: x.view(2, -1, 8, 8)[:, :8]),
            (2, "on 5 samples than on 2: dropout at", lambda self, x: F.dropout(x, 0.1 * len(x))),
            (2, "on 5 samples than on 2: conv2d", lambda self, x: (self.twin if len(x) > 2 else self.c)(x)),
            (64, "on 2 samples than on 64: mean at", lambda self, x: F.relu(x) if len(x) > 20 else x),
        ):
            with self.subTest(said, samples=samples):
                convs = {"c": nn.Conv2d(8, 8, 1), "twin": nn.Conv2d(8, 8, 1)}
                found = self.refused(Net(f, **convs), (samples, 3, 8, 8), record=False)
                self.assertIn("computes something else " + said, found)
                self.assertIn(HERE + ":", found)

    def test_what_depends_on_the_mode(self):
        for f in (
            lambda self, x: x if self.training else F.relu(x),
            lambda self, x: F.relu(x) if self.training else x,
            lambda self, x: self.norm(x) if self.training else x,
        ):
            said = self.refused(Net(f, norm=nn.BatchNorm2d(8)), record=False)
            self.assertIn("the model computes something else in evaluation mode: ", said)
            self.assertIn(HERE + ":", said)
        said = self.refused(Net(lambda self, x: F.dropout(x, 0.1)), record=False)
        self.assertRegex(said, rf"evaluation mode: dropout at .*, {HERE}:\d+ draws there, too")

    def test_what_differs_from_call_to_call(self):
        def counting_members(self, x):
            self.state["calls"] += 1
            return x

        def later(self, x):
            return x if next(self.counted) < 2 else F.relu(x)

        said = self.refused(Net(counting_members, state={"calls": 0}), record=False)
        self.assertIn("forward changes state of the model (Net) each time", said)
        said = self.refused(Net(later, counted=itertools.count()), record=False)
        self.assertIn("computes something else when it runs again: relu at the model (Net), " + HERE, said)

    def test_numbers_of_buffers_and_draws_decide_nothing(self):
        for f in (
            lambda self, x: x if self.norm.running_mean.sum() > 1 else F.relu(x),
            lambda self, x: F.dropout(x, self.norm.running_var[0].item() / 9),
            lambda self, x: F.relu(x) if torch.rand(1) < 0.5 else x,
        ):
            said = self.refused(Net(f, norm=nn.BatchNorm2d(8)), record=False)
            self.assertIn("the numbers of a tensor decide what is computed next", said)
            self.assertIn(HERE + ":", said)

    def test_activation_checkpoints_are_entered(self):
        for reentrant in (True, False):
            inner = nn.Sequential(nn.Conv2d(8, 8, 1), nn.ReLU())
            run = functools.partial(torch.utils.checkpoint.checkpoint, use_reentrant=reentrant)
            self.write(Net(lambda self, x: run(self.inner, x), inner=inner), 2, 3, 8, 8)
            graph_run.GraphRun(self.folder).compare()

    def test_one_refusal_lists_everything(self):
        odd = lambda x: torch.erfinv(torch.cummax(torch.erfinv(x), 1)[0])
        attention = nn.MultiheadAttention(8, 2, batch_first=True, add_zero_attn=True)
        attend = lambda self, x: self.a(*[odd(x).flatten(2).mT] * 3)[0].mT[..., None]
        said = self.refused(Net(attend, a=attention))
        self.assertRegex(
            said, r"'erfinv' at node \S+ \(the model \(Net\), \S+\) and 1 more; 'cummax' at node "
        )
        self.assertRegex(said, r"'multi_head_attention_forward' at node \S+ \(a \(MultiheadAttention")

    def test_losses(self):
        doubled = nn.CrossEntropyLoss()
        doubled.forward = lambda output, labels: 2 * F.cross_entropy(output, labels)
        for said, loss in (
            ("label_smoothing", nn.CrossEntropyLoss(label_smoothing=1.0)),
            ("label_smoothing", nn.CrossEntropyLoss(label_smoothing="0.1")),
            ("its forward or the loss", doubled),
            ("this loss needs labels", nn.MSELoss()),
            ("the loss None", None),
        ):
            with self.subTest(said):
                self.assertIn(said, self.refused(of_modules(lambda m: None)(), loss=loss))

    def test_arguments(self):
        mixer, small, images = modules.Mixer(), of_modules(lambda m: None)(), torch.zeros(2, 3, 16, 16)
        eight = torch.randn(2, 3, 8, 8)
        with tempfile.NamedTemporaryFile() as file:
            for said, module, inputs, options in (
                ("positional arguments", mixer, (images, torch.zeros(2)), {}),
                ("can't record the model", mixer, images.long(), {}),
                ("is a tensor, a tuple", mixer, "images", {}),
                ("but there are 2 samples", mixer, {"x": images, "y": torch.zeros(3)}, {}),
                ("above 32 bits", mixer, {"x": images, "y": torch.full((2,), 2**40)}, {}),
                ("not finite", mixer, images + float("inf"), {}),
                ("the loss 'l1'", mixer, images, {"loss": "l1"}),
                ("nll_loss needs", mixer, images, {"loss": "nll_loss"}),
                ("labels lie between 0 and 6", mixer, images, {"labels": [1, 7]}),
                ("labels have the shape (1,)", mixer, images, {"labels": [1]}),
                ("N x K", nn.Conv2d(3, 4, 1), torch.zeros(2, 3, 4, 4), {}),
                ("labels are numbers", small, eight, {"labels": ["a", "b"]}),
                ("labels have shares", small, eight, {"labels": torch.full((2, 4), float("nan"))}),
                ("auxiliary is", small, eight, {"auxiliary": "x"}),
                ("but the model has one", small, eight, {"auxiliary": 0.3}),
                ("can't be written", small, eight, {"folder": "a\0b"}),
                ("can't be written", small, eight, {"folder": file.name}),
                ("one at least", small, eight[:0], {}),
                ("has no numbers", small, eight[:, :0], {}),
            ):
                options = {"folder": self.folder, "record": False, **options}
                with self.subTest(said), self.assertRaises(antichain.AntichainError) as caught:
                    antichain.from_torch(module, inputs, **options)
                self.assertIn(said, str(caught.exception))


class Package(Case):
    def test_is_imported_without_pytorch(self):
        code = "import sys; sys.modules['torch'] = None; import antichain; print(antichain.plan.__name__)"
        said = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True)
        self.assertEqual((said.stdout, said.stderr), ("plan\n", ""))

    def test_weights_of_torch_save_are_converted(self):
        model, folder = seeded(modules.Branches), self.folder.parent
        state, out = model.state_dict(), folder / "out.safetensors"

        def converted(content):
            torch.save(content, folder / "in.pt")
            command = [sys.executable, "-B", "-m", "antichain.pytorch", "weights", folder / "in.pt", out]
            return subprocess.run(command, capture_output=True, text=True)

        beside = {"epoch": 3, "net": state, "best": 2}
        for content, left in ((state, ""), (beside, "; left out: epoch, best")):
            said = converted(content)
            self.assertEqual((said.stderr, said.returncode), ("", 0))
            self.assertIn(f"{len(state)} tensors", said.stdout)
            self.assertTrue(said.stdout.endswith(f"in.pt{left}\n"))
            read = safetensors.read(out)
            for name, tensor in state.items():
                numpy.testing.assert_array_equal(read[name], tensor.numpy())
        for content, wrong in (
            ({"a": state, "b": state}, "has 2 state_dicts: it has a, b"),
            ({"epoch": 3}, "has no state_dict: it has epoch"),
            (model, "save model.state_dict()"),
        ):
            said = converted(content)
            self.assertIn(wrong, said.stderr)
            self.assertEqual(said.returncode, 3)
        out.write_text("a thesis")
        self.assertIn("is there already and would be replaced", converted(state).stderr)
        self.assertEqual(out.read_text(), "a thesis")

    def test_safetensors_files_are_read_as_they_were_written(self):
        arrays = {
            "a": numpy.arange(6.0).reshape(2, 3),
            "none": numpy.zeros((0, 2), numpy.float32),
            "one": numpy.array(3, numpy.int64),
            "labels": numpy.array([1, 2], numpy.int32),
        }
        file = self.folder.parent / "file.safetensors"
        safetensors.write(file, arrays)
        read = safetensors.read(file)
        self.assertEqual(list(read), list(arrays))
        for name, array in arrays.items():
            numpy.testing.assert_array_equal(read[name], array)
            self.assertEqual((read[name].dtype, read[name].shape), (array.dtype, array.shape))
