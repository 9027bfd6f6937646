"""Plans for other runtimes (plan --for) are read by each runtime itself where it is installed. PyTorch 2.6 or
later has torch.distributed.pipelining; deepspeed and megatron-core are packages of PyPI."""

import copy
import json
import os
import re
import tempfile
import unittest

import torch
from torch import nn

import antichain


def with_parameters(plan):
    return {n["name"] for n in plan.profile.data["nodes"] if n["param_bytes"]}


def layers_of(layout):
    return sum(int(n or 1) for n in re.findall(r"t(?:\*(\d+))?", layout))


def skip_without(find):
    """Returns what `find` imports, or skips the test by the name of what is absent."""
    try:
        return find()
    except ImportError as absent:
        raise unittest.SkipTest(f"needs {absent.name}") from absent


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        return torch.relu(x + self.conv2(torch.relu(self.conv1(x))))


def small_net():
    """Returns a residual network that is a list of modules."""
    stem = nn.Conv2d(3, 8, 3, padding=1)
    return nn.Sequential(stem, *[Block(8) for _ in range(5)], nn.Flatten(), nn.Linear(8 * 8 * 8, 10))


class Layer(nn.Module):
    """A transformer layer of plain calls."""

    def __init__(self, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        x = x + self.out(torch.softmax(q @ k.transpose(1, 2), -1) @ v)
        return x + self.fc2(torch.relu(self.fc1(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.embed, self.head = nn.Linear(6, 16), nn.Linear(16, 6)
        self.layers = nn.ModuleList([Layer(16) for _ in range(layers)])

    def forward(self, x):
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Perceptron(nn.Module):
    """Functions between the layers, so most places to cut at have one module."""

    def __init__(self, layers=9):
        super().__init__()
        for i in range(layers):
            setattr(self, f"fc{i}", nn.Linear(16, 16))

    def forward(self, x):
        for layer in self.children():
            x = torch.tanh(layer(x))
        return x


class Squeeze(nn.Module):
    """Hu, Shen & Sun, "Squeeze-and-Excitation Networks", CVPR 2018: a residual block of it."""

    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(channels)
        self.act = nn.ReLU(inplace=True)
        self.fc1, self.fc2 = nn.Linear(channels, 2), nn.Linear(2, channels)

    def forward(self, x):
        y = self.act(self.bn1(self.conv1(x)))
        factor = torch.sigmoid(self.fc2(self.act(self.fc1(y.mean((2, 3))))))
        return self.act(x + y * factor[:, :, None, None].expand_as(y))


class Lists(nn.Module):
    """Containers that have no forward, and whose modules are called one by one."""

    def __init__(self):
        super().__init__()
        self.stem, self.head = nn.Linear(16, 16), nn.Linear(16, 4)
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))
        self.pairs = nn.ModuleList(
            nn.ModuleDict({"a": nn.Linear(16, 16), "b": nn.Linear(16, 16)}) for _ in range(3)
        )

    def forward(self, x):
        x = torch.relu(self.stem(x))
        for layer in self.layers:
            x = layer(x)
        for pair in self.pairs:
            x = x + pair["b"](torch.relu(pair["a"](x)))
        return self.head(torch.relu(x))


class Encoder(nn.Module):
    def __init__(self, layers=6):
        super().__init__()
        self.inp, self.out = nn.Linear(8, 16), nn.Linear(16, 4)
        layer = nn.TransformerEncoderLayer(16, 4, 32, 0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)

    def forward(self, x):
        return self.out(self.encoder(self.inp(x)).mean(1))


class Language(nn.Module):
    """A language model of token ids and a mask, whose head is its embedding."""

    def __init__(self, layers=4):
        super().__init__()
        self.parts = nn.ModuleDict(
            {"wte": nn.Embedding(50, 16), "wpe": nn.Embedding(8, 16), "h": nn.ModuleList()}
        )
        self.parts["h"].extend(Layer(16) for _ in range(layers))
        self.head = nn.Linear(16, 50, bias=False)
        self.head.weight = self.parts["wte"].weight

    def forward(self, ids, mask=None, *, scale=2.0):
        x = self.parts["wte"](ids) + self.parts["wpe"](torch.arange(ids.size(1), device=ids.device))
        if mask is not None:
            x = x * mask[:, :, None] * scale
        for layer in self.parts["h"]:
            x = layer(x)
        return self.head(x)


torch.manual_seed(1)  # processes have the same weights
IDS = torch.arange(32).reshape(4, 8)
MODELS = (
    (Perceptron(), (torch.randn(4, 16),)),
    (
        nn.Sequential(nn.Conv2d(3, 8, 3), *(Squeeze(8) for _ in range(4)), nn.Flatten(), nn.Linear(288, 4)),
        (torch.randn(4, 3, 8, 8),),
    ),
    (Lists(), (torch.randn(4, 16),)),
    (Encoder(), (torch.randn(4, 6, 8),)),
    (Language(), (IDS,)),
    (Language(), {"mask": torch.ones(4, 8), "ids": IDS, "scale": 3.0}),
)


def call(model, example):
    return model(**example) if isinstance(example, dict) else model(*example)


def planned(module, images, cuts):
    """Returns the plan of a module's profile whose stages end with these nodes."""
    profile = antichain.profile_torch(module, images, seconds=0.0)
    return antichain.plan(profile, stages=len(cuts) + 1, method="handsplit", cuts=",".join(cuts))


def train(net, batches):
    """Trains a copy of a network for three steps, and returns its parameters."""
    net = copy.deepcopy(net)
    sgd = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(3):
        sgd.zero_grad()
        for images, labels in batches:
            (nn.functional.cross_entropy(net(images), labels) / len(batches)).backward()
        sgd.step()
    return dict(net.named_parameters())


def train_by_deepspeed(rank, net, batches, parts, folder):
    """Trains one stage as `train` does, by DeepSpeed's engine on CPUs, and saves its parameters."""
    stages, batch = len(parts) - 1, len(batches[0][0])
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(stages), DS_ACCELERATOR="cpu")
    torch.set_num_threads(1)
    import deepspeed

    class Planned(deepspeed.pipe.PipelineModule):
        def _partition_layers(self, method):
            self.parts = parts
            self._set_bounds(parts[self.stage_id], parts[self.stage_id + 1])

    deepspeed.ops.__compatible_ops__.clear()  # so it compiles none
    ranks = {"init_method": f"file://{folder}/ranks", "rank": rank, "world_size": stages}
    deepspeed.init_distributed("gloo", auto_mpi_discovery=False, verbose=False, **ranks)
    own = copy.deepcopy(net)  # the processes share its tensors
    stage = Planned([*own], num_stages=stages, loss_fn=nn.CrossEntropyLoss())
    config = {
        "train_batch_size": batch * len(batches),
        "train_micro_batch_size_per_gpu": batch,
        "gradient_clipping": 0.0,  # 1 is its default
    }
    sgd = torch.optim.SGD(stage.parameters(), 0.1)
    engine, *_ = deepspeed.initialize(model=stage, optimizer=sgd, config=config)
    for _ in range(3):
        engine.train_batch(iter(batches))
    torch.save({name: p.detach() for name, p in stage.named_parameters()}, f"{folder}/{rank}.pt")


def megatron_layouts():
    import megatron.core.transformer.pipeline_parallel_layer_layout as layouts

    return layouts


class PlanFor(unittest.TestCase):
    def test_pytorch_splits_a_model_there(self):
        pipelining = skip_without(lambda: __import__("torch.distributed.pipelining", fromlist=["pipeline"]))
        net, images = small_net(), torch.zeros(2, 3, 8, 8)
        profile = antichain.profile_torch(net, images, seconds=0.0)
        searched = [antichain.plan(profile, stages=stages, runtime="torch") for stages in (2, 3, 5)]
        for plan in [planned(net, images, ["1.relu_1", "3.conv1", "5.relu_1"]), *searched]:
            points = json.loads(plan.text_for("torch"))
            split = {n: pipelining.SplitPoint[p] for n, p in points.items()}
            pipe = pipelining.pipeline(copy.deepcopy(net), (images,), split_spec=split)  # marks its modules
            self.assertEqual(pipe.num_stages, len(plan.stages))
            for s, names in enumerate(plan.stages):
                held = {name.rpartition(".")[0] for name, _ in pipe.get_stage_module(s).named_parameters()}
                self.assertEqual(held, with_parameters(plan).intersection(names))
            self.assertTrue(torch.equal(pipe(images)[0], net(images)))

    def test_a_module_is_named_once_and_was_called(self):
        for model, example in MODELS:
            profile = antichain.profile_torch(model, example, seconds=0.0)
            called = []
            for name, module in model.named_modules():
                module.register_forward_hook(lambda *_, name=name: called.append(name))
            call(model, example)
            for stages in range(2, 9):
                with self.subTest(type(model).__name__, stages=stages):
                    text = antichain.plan(profile, stages=stages, runtime="torch").text_for("torch")
                    points = json.loads(text, object_pairs_hook=list)
                    self.assertEqual(len({name for name, _ in points}), stages - 1)
                    for name, _ in points:
                        self.assertEqual(called.count(name), 1, name)

    def test_pytorch_makes_as_many_stages(self):
        pipelining = skip_without(lambda: __import__("torch.distributed.pipelining", fromlist=["pipeline"]))
        for model, example in MODELS:
            keywords = example if isinstance(example, dict) else {}
            args = () if keywords else example
            profile = antichain.profile_torch(model, example, seconds=0.0)
            for stages in range(2, 9):
                with self.subTest(type(model).__name__, stages=stages):
                    points = json.loads(
                        antichain.plan(profile, stages=stages, runtime="torch").text_for("torch")
                    )
                    split = {n: pipelining.SplitPoint[p] for n, p in points.items()}
                    pipe = pipelining.pipeline(copy.deepcopy(model), args, keywords, split_spec=split)
                    self.assertEqual(pipe.num_stages, stages)
                    torch.testing.assert_close(pipe(*args, **keywords)[0], call(model, example))

    def test_each_runtime_cuts_a_stock_encoder_between_its_layers(self):
        profile = antichain.profile_torch(*MODELS[3], seconds=0.0)
        text = {
            r: antichain.plan(profile, stages=3, runtime=r).text_for(r) for r in ("deepspeed", "megatron")
        }
        self.assertGreaterEqual(len(json.loads(text["deepspeed"])["layers"]), 8)
        self.assertEqual(text["megatron"].count("|"), 2)
        self.assertEqual(layers_of(text["megatron"]), 6)

    def test_deepspeed_trains_the_planned_stages(self):
        skip_without(lambda: __import__("deepspeed"))
        torch.set_num_threads(1)
        mlp = nn.Sequential(*(layer for _ in range(5) for layer in (nn.Linear(16, 16), nn.Tanh())))
        for net, shape in ((mlp, (16,)), (MODELS[1][0], (3, 8, 8))):
            batches = [(torch.randn(4, *shape), torch.arange(4)) for _ in range(4)]
            profile = antichain.profile_torch(net, batches[0][0], seconds=0.0)
            trained = train(net, batches)
            for stages in range(2, 5):
                plan = antichain.plan(profile, stages=stages, runtime="deepspeed")
                file = json.loads(plan.text_for("deepspeed"))
                # Its layers are those of the list, each a module here.
                self.assertEqual(
                    [{name.split(".")[0] for name in layer} for layer in file["layers"]],
                    [{str(i)} for i in range(len(net))],
                )
                with tempfile.TemporaryDirectory() as folder:
                    given = (net, batches, file["parts"], folder)
                    torch.multiprocessing.spawn(train_by_deepspeed, given, stages)
                    held = [torch.load(f"{folder}/{rank}.pt") for rank in range(stages)]
                for names, stage in zip(map(set, plan.stages), held):
                    modules = {name.split(".")[0] for name in names & with_parameters(plan)}
                    self.assertEqual({name.split(".")[0] for name in stage}, modules)
                together = {name: p for stage in held for name, p in stage.items()}
                self.assertEqual(list(together), list(trained))
                for name, p in trained.items():
                    self.assertTrue(torch.equal(p, together[name]), name)

    def test_megatron_reads_the_layout(self):
        layouts = skip_without(megatron_layouts)
        plan = planned(Transformer(7), torch.zeros(2, 4, 6), ["layers.1.add_1", "layers.3.add_1"])
        self.assertEqual(plan.text_for("megatron"), "Et*2|t*2|t*3L\n")
        models = [(7, Transformer(7), torch.zeros(2, 4, 6)), (6, *MODELS[3])]
        models += [(layers, Language(layers), IDS) for layers in (4, 12, 24)]
        for layers, model, example in models:
            profile = antichain.profile_torch(model, example, seconds=0.0)
            for stages in range(2, min(layers, 8) + 1):
                with self.subTest(layers=layers, stages=stages):
                    text = antichain.plan(profile, stages=stages, runtime="megatron").text_for("megatron")
                    layout = layouts.PipelineParallelLayerLayout.from_str(text.strip(), stages)
                    layout.validate_layer_layout(num_layers=layers, mtp_num_layers=None)
                    built = [layout.get_num_layers_to_build(pp_rank=s, vp_stage=0) for s in range(stages)]
                    self.assertEqual(sum(built), layers)
                    self.assertEqual(built, [*map(layers_of, text.strip().split("|"))])

    def test_what_a_format_can_not_say_is_refused(self):
        profile = antichain.profile_torch(small_net(), torch.zeros(2, 3, 8, 8), seconds=0.0)
        for node in profile.data["nodes"]:  # so the cut is better than any that DeepSpeed can have
            node["forward_us"] = 1000.0 if node["name"] in ("2.conv1", "2.conv2") else 1.0
        plan = antichain.plan(profile, stages=2, method="handsplit", cuts="2.conv1")
        with self.assertRaisesRegex(
            antichain.AntichainError, "2.conv1 of stage 0 and 2.relu of stage 1 are in one"
        ):
            plan.text_for("deepspeed")
        with self.assertRaisesRegex(antichain.AntichainError, "equal transformer layers"):
            planned(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)), torch.zeros(2, 4), ["0"]).text_for(
                "megatron"
            )
