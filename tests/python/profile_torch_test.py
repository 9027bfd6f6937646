"""antichain.profile_torch makes a profile of what PyTorch measures of itself, and the program plans for
it."""

import io
import pathlib
import tempfile
import time
import unittest
import unittest.mock

import torch
from torch import nn

import antichain
import modules
from antichain.pytorch.profile_torch import Clock


class Attention(nn.Module):
    """Vaswani et al., "Attention Is All You Need", NeurIPS 2017. Antichain has no operator for it."""

    def __init__(self, width=16):
        super().__init__()
        self.embed = nn.Conv2d(3, width, 4, 4)
        self.position = nn.Parameter(torch.zeros(1, 16, width))
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.fc = nn.Linear(width, 4)

    def forward(self, x):
        x = self.embed(x).flatten(2).transpose(1, 2) + self.position
        return self.fc((x + self.attention(x, x, x)[0]).mean(1))


class Shifted(nn.Module):
    def forward(self, x):
        return x.mul(2).add_(1).flatten(1)


class Tied(nn.Module):
    """Token ids go in; the head has the embedding's weight."""

    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(12, 8), nn.Linear(8, 12, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids, mask=None, *, scale=1.0):
        x = self.embed(ids)
        return self.head(x if mask is None else x * mask[:, :, None] * scale)


class Parted(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.same, self.last = nn.Linear(4, 8), nn.Identity(), nn.Linear(4, 2)

    def forward(self, x):
        a, b = self.first(x).chunk(2, 1)
        return self.last(self.same(a) * b)


class Whole(nn.Module):
    def forward(self, x):
        return x.argmax(1)


class Terminal(io.StringIO):
    def isatty(self):
        return True


class ProfileTorch(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)
        torch.manual_seed(1)

    def profile(self, module):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "profile.json"
            profile = antichain.profile_torch(
                module,
                torch.randn(4, 3, 16, 16),
                file=file,
                seconds=0.2,
                link_bytes_per_s=1e9,
                link_latency_s=2e-5,
            )
            self.assertEqual(antichain.Profile.read(file).data, profile.data)
        return profile

    def test_every_call_is_a_node(self):
        model = modules.Branches()
        profile = self.profile(model)
        nodes = {n["name"]: n for n in profile.data["nodes"]}
        self.assertEqual(list(nodes)[:3] + list(nodes)[-1:], ["images", "labels", "a.0", "loss"])
        self.assertNotIn("auxiliary", nodes)  # the model's own output does not need it
        conv = nodes["b.2"]
        self.assertEqual(conv["output_bytes"], 4 * 16 * 8 * 8 * 4)
        self.assertEqual(conv["param_bytes"], sum(p.numel() for p in model.b[2].parameters()) * 4)
        self.assertGreater(conv["forward_us"], 0)
        self.assertGreater(conv["backward_input_us"] + conv["backward_weight_us"], 0)
        self.assertEqual(nodes["a.0"]["backward_input_us"], 0)  # images take no gradient
        self.assertTrue(nodes["b.1"]["keeps_output"])  # the convolution behind reads it again
        self.assertEqual(profile.data["microbatch"], 4)
        self.assertEqual(profile.data["link"], {"bytes_per_s": 1e9, "latency_us": 20.0})

    def test_it_says_what_works_in_place(self):
        net = nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.ReLU(inplace=True), nn.Conv2d(4, 4, 3), nn.ReLU(), Shifted()
        )
        nodes = self.profile(net).data["nodes"]
        self.assertEqual([n["name"] for n in nodes if n.get("in_place")], ["1", "4.add"])

    def test_inputs_are_of_any_kind_and_number(self):
        ids, mask = torch.arange(12).reshape(3, 4), torch.ones(3, 4)
        for example, inputs in (
            (ids, ["input.ids"]),
            ((ids,), ["input.ids"]),
            ((ids, mask), ["input.ids", "input.mask"]),
            ((ids, None), ["input.ids"]),
            ({"mask": mask, "ids": ids, "scale": 2.0}, ["input.mask", "input.ids"]),
        ):
            with self.subTest(inputs=inputs):
                profile = antichain.profile_torch(Tied(), example, seconds=0.0)
                nodes = {n["name"]: n for n in profile.data["nodes"]}
                self.assertEqual([n for n in nodes if nodes[n]["role"] == "input"], [*inputs, "labels"])
                self.assertEqual(nodes["embed"]["inputs"], [nodes["input.ids"]["id"]])
                self.assertEqual(nodes["embed_1"]["module"], "head")  # the parameter is the embedding's
                self.assertEqual(nodes["embed_1"]["param_bytes"], nodes["embed"]["param_bytes"])
                (use,), (again,) = nodes["embed"]["shared"], nodes["embed_1"]["shared"]
                self.assertEqual(use, again)
                of_embed = nodes["embed"]["param_bytes"]
                self.assertEqual((use["weight"], use["bytes"]), ("embed.weight", of_embed))
                self.assertEqual(profile.data["microbatch"], 3)
                self.assertEqual(profile.data["called_once"], ["embed", "head"])
                self.assertEqual(len(antichain.plan(profile, stages=2).stages), 2)

    def test_gradients_go_through_calls_that_return_what_they_were_given(self):
        profile = antichain.profile_torch(Parted(), torch.randn(3, 4), seconds=0.0)
        calls = [n for n in profile.data["nodes"] if n["role"] == "compute"]
        self.assertEqual([n["name"] for n in calls if not n["needs_gradient"]], [])
        self.assertIn("getitem", [n["op"] for n in calls])

    def test_what_is_frozen_costs_no_update(self):
        net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3))
        net[0].requires_grad_(False)
        first, second = self.profile(net).data["nodes"][2:4]
        self.assertEqual(
            (first["update_us"], first["optimiser_bytes"], first["needs_gradient"]), (0, 0, False)
        )
        self.assertNotIn("optimiser_bytes", second)

    def test_the_wrong_is_refused_in_one_sentence(self):
        net, images = nn.Linear(3, 2), torch.zeros(2, 3)
        for said, wrong in (
            ("example_inputs is a tensor", {"example_inputs": "images"}),
            ("example_inputs is a tensor", {"example_inputs": ()}),
            ("example_inputs is a tensor", {"example_inputs": torch.zeros(0, 3)}),
            ("can't record the model", {"example_inputs": torch.zeros(2, 4)}),
            ("no gradient", {"module": Whole()}),
            ("torch.nn.Module, not function", {"module": lambda x: x}),
            ("device 'abacus'", {"device": "abacus"}),
            ("not on 'meta'", {"device": "meta"}),
            ("seconds is", {"seconds": float("nan")}),
            ("link_bytes_per_s is", {"link_bytes_per_s": "25GB"}),
            ("no gradient", {"module": nn.Linear(3, 2).requires_grad_(False)}),
            ("no gradient", {"loss": lambda output: 1.0}),
            ("the loss can't be computed", {"loss": lambda output: output.reshape(5)}),
            ("can't write", {"file": "/nowhere/profile.json"}),
        ):
            with self.subTest(said, wrong=wrong), self.assertRaises(antichain.AntichainError) as caught:
                antichain.profile_torch(**{"module": net, "example_inputs": images, "seconds": 0.0, **wrong})
            self.assertIn(said, str(caught.exception))

    def test_a_slow_node_runs_once(self):
        runs = []
        with unittest.mock.patch("sys.stderr", new_callable=Terminal) as terminal:
            clock = Clock(torch.device("cpu"), time.perf_counter() + 0.1, nodes=2)
            for _ in range(2):
                clock.begin_node()
                self.assertGreaterEqual(clock.median(lambda: runs.append(time.sleep(0.2))), 0.2)
        self.assertEqual(len(runs), 2)
        self.assertIn("measuring node 1 of 2", terminal.getvalue())

    def test_the_program_plans_for_it(self):
        for model, stages in ((modules.Gated(), 3), (Attention(), 2)):
            with self.subTest(type(model).__name__):
                profile = self.profile(model)
                plan = antichain.plan(profile, stages=stages)
                self.assertEqual(len(plan.stages), stages)
                self.assertGreater(antichain.simulate(profile, plan).step_s, 0)

    def test_the_model_stays_as_it_is(self):
        model = modules.Branches().eval()
        before = {n: t.clone() for n, t in model.state_dict().items()}
        self.profile(model)
        self.assertFalse(model.training)
        for name, tensor in model.state_dict().items():
            self.assertTrue(torch.equal(before[name], tensor), name)
