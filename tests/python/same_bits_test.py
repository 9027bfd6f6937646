"""Models of torchvision train to the same bits on 1, 2 and 4 stages. tests/scripts/torchvision_models.py
compares more of them; docs/torchvision.csv is its table."""

import os
import tempfile
import unittest
import warnings

import torch

from check_test import of_torchvision

# A network with sums over two branches and depthwise convolutions, one whose channels are taken apart and
# mixed, and one that joins four branches.
MODELS = ["mobilenet_v2", "shufflenet_v2_x0_5", "googlenet"]
if os.environ.get("ANTICHAIN_LARGE_TESTS"):
    MODELS += ["resnet18"]


@unittest.skipIf(of_torchvision is None, "needs torchvision")
class SameBits(unittest.TestCase):
    def test_on_1_2_and_4_stages(self):
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        for name in MODELS:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                states = of_torchvision.bits_by_stages(name, folder, os.environ["ANTICHAIN"])
                self.assertEqual(list(states), [1, 2, 4])
                self.assertEqual(len(set(states.values())), 1, states)
