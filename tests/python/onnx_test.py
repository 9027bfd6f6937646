"""These tests are about ONNX files: what PyTorch exports gives the same logits here, and onnxruntime computes
the same from what Antichain writes. tests/scripts/onnx_models.py does so with every model and opset."""

import os
import pathlib
import sys
import tempfile
import unittest
import warnings

import torch

import antichain

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/scripts"))
sys.path.insert(0, str(ROOT / "tests/golden"))
try:
    import onnx_models
    import tensor_file
except SystemExit:  # torchvision is absent
    onnx_models = None

PROGRAM = os.environ["ANTICHAIN"]
# PyTorch exports each model with this opset.
MODELS = {"mobilenet_v3_small": 11, "resnet18": 13, "shufflenet_v2_x0_5": 17}
if os.environ.get("ANTICHAIN_LARGE_TESTS"):
    MODELS |= {"convnext_tiny": 11, "densenet121": 17, "efficientnet_b0": 13, "mobilenet_v2": 17, "squeezenet1_1": 11}
# PyTorch computes in float32, which rounds at 6e-8; behind a hundred layers the logits differ by some 1e-6.
MOST_ERROR = 1e-4


@unittest.skipIf(onnx_models is None, "needs torchvision")
class Onnx(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)

    def test_imports_models_of_torchvision(self):
        for name, opset in MODELS.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                ours, again = onnx_models.attempt(name, opset, folder, PROGRAM)
                self.assertLess(ours, MOST_ERROR)
                if again is not None:
                    self.assertLess(again, MOST_ERROR)

    @unittest.skipUnless(onnx_models and onnx_models.HAS_ONNXRUNTIME, "needs onnxruntime")
    def test_onnxruntime_runs_what_is_exported(self):
        for name in ("resnet18", "mobilenet_v3_large", "convnext_tiny", "efficientnet_b0"):
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                model, images = onnx_models.made(name, side=224)
                weights, file = (pathlib.Path(folder) / n for n in ("weights.safetensors", "net.onnx"))
                tensor_file.write(weights, model.state_dict())
                onnx_models.export(
                    PROGRAM, "--model", name, "--form", "imagenet", "--init", weights, "--out", file
                )
                with torch.no_grad():
                    error = onnx_models.error(onnx_models.run_by_onnxruntime(file, images), model(images))
                self.assertLess(error, MOST_ERROR)

    @unittest.skipUnless(onnx_models and onnx_models.HAS_ONNXRUNTIME, "needs onnxruntime")
    def test_onnxruntime_runs_adaptive_pools_whose_windows_differ(self):
        module = torch.nn.Sequential(
            torch.nn.AdaptiveAvgPool2d((3, 4)),  # of 5 x 7 pixels
            torch.nn.AdaptiveAvgPool2d((6, 2)),  # repeats rows, divides columns
            torch.nn.Flatten(),
            torch.nn.Linear(3 * 6 * 2, 5),
        ).eval()
        images = torch.randn(2, 3, 5, 7)
        with tempfile.TemporaryDirectory() as folder:
            net, file = (pathlib.Path(folder) / n for n in ("net.antichain", "net.onnx"))
            antichain.from_torch(module, images, folder=net)
            onnx_models.export(PROGRAM, "--graph", net, "--out", file)
            with torch.no_grad():
                error = onnx_models.error(onnx_models.run_by_onnxruntime(file, images), module(images))
        self.assertLess(error, MOST_ERROR)
