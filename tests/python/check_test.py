"""`antichain check` computes what PyTorch recorded of three models of torchvision (of eight with
ANTICHAIN_LARGE_TESTS=1), which tests/scripts/torchvision_models.py does with all of them;
docs/torchvision.csv is its table. It still finds mistakes in one of those whose own float32 errors are the
largest."""

import json
import os
import pathlib
import sys
import tempfile
import unittest
import warnings

import torch

import antichain
from antichain import safetensors

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/scripts"))
try:
    from torchvision_models import Torchvision
except SystemExit:  # torchvision is absent
    of_torchvision = None
else:
    of_torchvision = Torchvision()

MODELS = ["mobilenet_v3_small", "shufflenet_v2_x0_5", "squeezenet1_1"]
WHOLE = ["efficientnet_b0", "mobilenet_v3_small", "squeezenet1_1"]  # all of their weights can be compared
if os.environ.get("ANTICHAIN_LARGE_TESTS"):
    MODELS += ["efficientnet_b0", "googlenet", "mnasnet0_5", "regnet_y_400mf", "resnet18"]


@unittest.skipIf(of_torchvision is None, "needs torchvision")
class Check(unittest.TestCase):
    def test_models_of_torchvision(self):
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        for name in MODELS:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                line = of_torchvision.attempt(name, folder, os.environ["ANTICHAIN"])
                self.assertEqual(line.get("not translated because"), None)
                self.assertEqual(line["check"], "passed")
                # Roundings that grow a thousandfold in each step leave nothing to compare in some weights.
                left_out = r"^$" if name in WHOLE else r"^(\d+ of \d+ weights)?$"
                self.assertRegex(line["not compared"], left_out)

    def test_mistakes_are_found(self):
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        with tempfile.TemporaryDirectory() as folder:
            of_torchvision.attempt("shufflenet_v2_x0_5", folder, os.environ["ANTICHAIN"])
            files = {name: pathlib.Path(folder, name) for name in os.listdir(folder)}
            right = {file: file.read_bytes() for file in files.values()}

            def finds(what):
                with self.assertRaisesRegex(antichain.AntichainError, what):
                    antichain.run("check", graph=folder)
                for file, content in right.items():
                    file.write_bytes(content)

            def change(name, tensor, make):
                tensors = safetensors.read(files[name])
                tensors[tensor] = make(tensors[tensor])
                safetensors.write(files[name], tensors)

            # One of 24 kernels of a depthwise convolution that is turned round.
            def turned(weight):
                weight[3] = weight[3, :, ::-1]
                return weight

            change("weights.safetensors", "stage2.1.branch2.3.weight", turned)
            finds("the output of node stage2.1.branch2")
            graph = json.loads(right[files["graph.json"]])
            norm = next(n for n in graph["nodes"] if n["name"] == "stage3.0.branch1.1")
            norm["options"] = {"eps": 1e-3}
            files["graph.json"].write_text(json.dumps(graph))
            finds("the output of node stage3.0.branch1")
            change("check.safetensors", "gradient.conv1.0.weight", lambda g: g * 1.3)
            finds("the gradient of conv1.0.weight")
            change("check.safetensors", "gradient.fc.bias", lambda g: g[::-1])
            finds("the gradient of fc.bias")
            # A running mean that is off by a twentieth of the running deviation.
            variance = safetensors.read(files["check.safetensors"])["after.conv1.1.running_var"]
            change("check.safetensors", "after.conv1.1.running_mean", lambda m: m + variance**0.5 / 20)
            finds("after the steps, the buffer conv1.1.running_mean")
