"""The networks of examples/pytorch/any_module.py train as they do in PyTorch, and to the same bits on any
number of ranks."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import numpy
import torch

import antichain
from antichain import safetensors
from antichain.pytorch.losses import losses_of
from antichain.pytorch.normalise import flat
from in_a_folder import InAFolder

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "examples/pytorch"))
import any_module  # noqa: E402

SAMPLES, STEPS, RATE = 16, 3, 0.05
WHOLE = 4 * SAMPLES // 3  # a quarter are for tests
LARGE = bool(os.environ.get("ANTICHAIN_LARGE_TESTS"))
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def losses_in_pytorch(task, dtype):
    """Returns the losses of some steps of SGD on the whole batch."""
    module, pairs = task.module.to(dtype), losses_of(task.loss)
    for loss, _ in pairs:
        if isinstance(loss, torch.nn.Module):
            loss.to(dtype)
    skipped = WHOLE // 4
    inputs, targets = (
        [x[skipped:].to(dtype) if x.is_floating_point() else x[skipped:] for x in of.values()]
        for of in (task.inputs, task.targets)
    )
    optimiser = torch.optim.SGD([p for p in module.parameters() if p.requires_grad], RATE)
    losses = []
    for _ in range(STEPS):
        outputs = flat(module(*inputs))
        loss = sum(weight * of(x, y) for (of, weight), x, y in zip(pairs, outputs, targets))
        losses.append(loss.item())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return numpy.array(losses)


def task_of(name):
    torch.manual_seed(1)
    return any_module.NETWORKS[name](WHOLE)


class NamedLoss(torch.nn.Module):
    """One of its modules has the name that nodes of a user's loss begin with, and reads an input alone."""

    def __init__(self):
        super().__init__()
        self.loss, self.other = (torch.nn.Sequential(torch.nn.Linear(3, 2)) for _ in range(2))

    def forward(self, x, z):
        return self.loss(x) + self.other(z)


class AnyModule(InAFolder):
    def write(self, name):
        files = (str(self.folder / file) for file in ("net.antichain", "set.h5"))
        options = any_module.write(task_of(name), *files)
        options |= {"batch": SAMPLES, "microbatches": 4, "epochs": STEPS, "lr": RATE, "momentum": 0}
        return options | {"weight_decay": 0, "lr_schedule": "constant", "warmup_steps": 0}

    def train(self, options, ranks=1, processes=False):
        """Returns the losses of the steps and the hash of the weights behind them."""
        metrics, results = str(self.folder / "metrics"), str(self.folder / "json")
        options = options | {"metrics": metrics, "json": results}
        if processes:
            program = ["mpirun", "--oversubscribe", "-n", str(ranks), os.environ["ANTICHAIN"], "train"]
            words = [f"--{key.replace('_', '-')}={value}" for key, value in options.items()]
            here = {"env": {**os.environ, **AS_ROOT}, "capture_output": True, "text": True}
            done = subprocess.run([*program, *words], **here)
            self.assertEqual(done.returncode, 0, done.stderr)
        else:
            antichain.run("train", local=ranks, listener=lambda *_: None, **options)
        with open(metrics) as lines:
            steps = [json.loads(line) for line in lines]
        with open(results) as file:
            state = json.load(file)["state"]
        return [step["loss"] for step in steps if "step" in step and "rate" in step], state

    def test_they_train_as_in_pytorch_on_any_number_of_ranks(self):
        for name in any_module.NETWORKS:
            with self.subTest(name):
                options = self.write(name)
                antichain.run("check", graph=options["graph"], listener=lambda *_: None)
                one = self.train(options)
                right, theirs = (losses_in_pytorch(task_of(name), t) for t in (torch.float64, torch.float32))
                # Four is that of the model zoo's rule; float32 rounds at 6e-8, and thousands are added up.
                allowed = numpy.maximum(4 * abs(theirs - right), 1e-5 * abs(right))
                self.assertTrue((abs(one[0] - right) <= allowed).all(), (one[0], right, theirs))
                for ranks in (2, 4):
                    self.assertEqual(self.train(options, ranks), one, ranks)

    def test_targets_are_those_of_the_loss(self):
        x, z, y = torch.rand(3, WHOLE, 3)
        task = any_module.Task(NamedLoss(), {"x": x, "z": z}, {"y": y[:, :2]},
                               lambda out, y: ((out - y) ** 2).mean())
        options = any_module.write(task, *(str(self.folder / file) for file in ("net.antichain", "set.h5")))
        losses, _ = self.train(options | {"batch": SAMPLES, "steps": 1})
        self.assertEqual(len(losses), 1)

    def test_gradients_of_a_batch_of_arrays(self):
        for name in ("siamese", "two_heads", "unet"):
            with self.subTest(name):
                net = pathlib.Path(self.write(name)["graph"])
                recorded = safetensors.read(net / "check.safetensors")
                inputs = json.loads((net / "graph.json").read_text())["inputs"]
                types = {"float32": numpy.float32, "int32": numpy.int64}
                batch = {i["name"]: recorded[f"input.{i['name']}"].astype(types[i["dtype"]]) for i in inputs}
                given, out = (str(self.folder / file) for file in ("batch.safetensors", "g.safetensors"))
                safetensors.write(given, batch)
                files = {"weights": net / "weights.safetensors", "images": given, "out": out}
                antichain.run("gradients", graph=net, microbatches=3, listener=lambda *_: None, **files)
                ours = safetensors.read(out)
                numpy.testing.assert_allclose(ours["loss"], recorded["loss"], 1e-5)
                for key in (key for key in recorded if key.startswith("gradient.")):
                    right = recorded[key]
                    error = numpy.linalg.norm(ours[key.removeprefix("gradient.")] - right)
                    # Sums of thousands of numbers, each rounded at 6e-8.
                    self.assertLessEqual(error, 1e-4 * numpy.linalg.norm(right) + 1e-7, key)

    @unittest.skipIf(shutil.which("mpirun") is None, "needs mpirun")
    def test_processes_give_the_same_bits(self):
        for name in any_module.NETWORKS if LARGE else ["gru"]:
            with self.subTest(name):
                options = self.write(name)
                one = self.train(options)
                for ranks in (2, 4):
                    self.assertEqual(self.train(options, ranks, processes=True), one, ranks)


if __name__ == "__main__":
    unittest.main()
