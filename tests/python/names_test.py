"""What is trained goes back into PyTorch by its names; weights of torch.save; the package without PyTorch."""

import pathlib
import subprocess
import sys
import tempfile

import numpy
import torch
import torch.nn.functional as F
from torch import nn

import antichain
import graph_run
import modules
from antichain import safetensors
from from_torch_case import Case, seeded


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
