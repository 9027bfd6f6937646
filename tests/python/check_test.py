"""`antichain check` computes what PyTorch recorded of eight models of torchvision, which
tests/scripts/torchvision_models.py does with all of them; docs/torchvision.csv is its table."""

import os
import pathlib
import sys
import tempfile
import unittest
import warnings

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/scripts"))
try:
    import torchvision_models
except SystemExit:  # torchvision is absent
    torchvision_models = None

MODELS = [
    "efficientnet_b0",
    "googlenet",
    "mnasnet0_5",
    "mobilenet_v3_small",
    "regnet_y_400mf",
    "resnet18",
    "shufflenet_v2_x0_5",
    "squeezenet1_1",
]


@unittest.skipIf(torchvision_models is None, "needs torchvision")
class Check(unittest.TestCase):
    def test_eight_models(self):
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        for name in MODELS:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                line = torchvision_models.attempt(name, folder, os.environ["ANTICHAIN"])
                self.assertEqual(line.get("not translated because"), None)
                self.assertEqual(line["check"], "passed")
                # Roundings can move the losses after steps and the gradients of a model, but not its outputs.
                self.assertNotIn("outputs", line["not compared"])


if __name__ == "__main__":
    unittest.main()
