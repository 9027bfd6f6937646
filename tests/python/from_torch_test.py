"""antichain.from_torch writes what PyTorch computes, and refuses what it can't translate."""

import functools
import os
import pathlib
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
from from_torch_case import Case, seeded
from refusals_test import Net

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

    def test_what_computes_in_float32_is_recorded_in_float64(self):
        class Wide(modules.Gated):
            def forward(self, x):
                y = super().forward(x)
                return y.float() * torch.softmax(y, 1, dtype=torch.float32).to(y.dtype)

        self.write(seeded(Wide), 3, 3, 16, 16)
        graph_run.GraphRun(self.folder).compare()

    def test_a_parameter_of_each_sample_joins_tokens(self):
        class Token(modules.Gated):
            def __init__(self):
                super().__init__()
                self.token = nn.Parameter(torch.ones(1, 1, 10))

            def forward(self, x):
                y = super().forward(x)
                return torch.cat((self.token.expand(len(y), -1, -1), y[:, None]), 1).amax(1)

        self.write(seeded(Token), 3, 3, 16, 16)
        graph_run.GraphRun(self.folder).compare()

    def test_a_maximum_over_more_pixels_than_a_window_has(self):
        head = nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(4, 3)
        self.write(seeded(lambda: nn.Sequential(nn.Conv2d(3, 4, 1), *head)), 3, 3, 18, 16)
        graph_run.GraphRun(self.folder).compare()
        antichain.run("check", graph=self.folder)

    def test_losses(self):
        for options in (
            {"loss": "nll_loss"},
            {"loss": nn.CrossEntropyLoss(label_smoothing=0.1)},
            {"labels": torch.full((3, 10), 0.1)},
        ):
            with self.subTest(str(options)):
                self.write(seeded(modules.Gated), 3, 3, 16, 16, **options)
                graph_run.GraphRun(self.folder).compare()
        labels = {"name": "labels", "shape": [10], "dtype": "float32", "target": True}
        self.assertEqual(self.graph()["inputs"][1], labels)


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
