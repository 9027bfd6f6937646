"""antichain.from_torch refuses in one sentence what it can't translate, and what would train otherwise."""

import functools
import itertools
import pathlib
import random
import tempfile

import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import nn

import antichain
import graph_run
import modules
from antichain import safetensors
from from_torch_case import Case, Freezing, of_modules

HERE = pathlib.Path(__file__).name


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
    x[x > 0] = 0
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
            ("'sort' at node sort (the model (Net), ", lambda self, x: x.sort(1)[0], {}),
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
        said = self.refused(Net(lambda self, x: self.a(odd(x)), a=nn.RReLU()))
        self.assertRegex(
            said, r"'erfinv' at node \S+ \(the model \(Net\), \S+\) and 1 more; 'cummax' at node "
        )
        self.assertRegex(said, r"'rrelu' at node \S+ \(a \(RReLU")

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
