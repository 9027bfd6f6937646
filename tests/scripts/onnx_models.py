#!/usr/bin/env python3
"""Exports classification models of torchvision to ONNX, imports them, and compares the logits with PyTorch's.

The logits compared are those of the graph that `python3 -m antichain.onnx import` makes, carried out in
float64, and where onnxruntime is installed those of the ONNX file that `export` makes of it. The script
prints a table, and fails where an error is above 1e-5 of the largest logit.

  tests/scripts/onnx_models.py [--opsets 11 13 17] [MODEL …]
"""

import argparse
import importlib.util
import json
import pathlib
import sys
import tempfile
import warnings

root = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(root / "app/python"), str(root / "tests/python")]
try:
    import torch
    import torchvision
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)
import graph_run  # noqa: E402

from antichain import safetensors  # noqa: E402
from antichain.onnx.exporting import export_onnx  # noqa: E402
from antichain.onnx.importing import import_onnx  # noqa: E402

MODELS = (
    "resnet18 mobilenet_v2 mobilenet_v3_small efficientnet_b0 convnext_tiny densenet121 squeezenet1_1 "
    "shufflenet_v2_x0_5 googlenet mnasnet0_5 regnet_y_400mf resnext50_32x4d"
).split()
ALLOWED = 1e-5  # of the largest logit
HAS_ONNXRUNTIME = importlib.util.find_spec("onnxruntime") is not None


class Evaluation(graph_run.GraphRun):
    """Runs a folder NAME.antichain in evaluation mode."""

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        self.graph = json.loads((folder / "graph.json").read_text())
        state = safetensors.read(folder / "weights.safetensors")
        self.parameters = {name: torch.from_numpy(a).double() for name, a in state.items()}
        self.used = set()

    def batch_norm(self, node, o, x):
        mean, variance = (self.parameter(f"{node['name']}.running_{s}") for s in ("mean", "var"))
        return torch.nn.functional.batch_norm(x, mean, variance, *self.weights(node), False, 0, o["eps"])

    def logits(self, images):
        values = {self.graph["inputs"][0]["name"]: images.double()}
        for node in self.graph["nodes"]:
            inputs = [values.get(i) for i in node["inputs"]]
            if node["op"] == "softmax_cross_entropy":
                return inputs[0]
            values[node["name"]] = self.compute(node, inputs)


def made(name, side=64):
    """Returns a model of torchvision in evaluation mode, its running statistics those of two batches, and
    images of side x side pixels."""
    torch.manual_seed(3)
    model = torchvision.models.get_model(name, weights=None)
    images = torch.randn(2, 3, side, side)
    with torch.no_grad():
        for _ in range(2):
            model.train()(images)
    return model.eval(), images


def run_by_onnxruntime(file, images):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    return torch.from_numpy(session.run(None, {session.get_inputs()[0].name: images.numpy()})[0])


def error(logits, expected):
    return float((logits - expected).abs().max() / expected.abs().max())


def attempt(name, opset, folder):
    """Returns how far the logits are from PyTorch's, as a share of the largest: of the graph that was
    imported, and of the ONNX file that is made of it (None without onnxruntime)."""
    model, images = made(name)
    file, imported, again = (
        pathlib.Path(folder) / n for n in ("net.onnx", "net.antichain", "again.onnx")
    )
    torch.onnx.export(model, images, str(file), opset_version=opset, input_names=["images"])
    import_onnx(file, imported)
    with torch.no_grad():
        expected = model(images)
        ours = error(Evaluation(imported).logits(images), expected.double())
    if not HAS_ONNXRUNTIME:
        return ours, None
    export_onnx(imported, again)
    return ours, error(run_by_onnxruntime(again, images), expected)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="*", default=MODELS, metavar="MODEL")
    parser.add_argument("--opsets", type=int, nargs="+", default=[11, 13, 17])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    failed = 0
    for name in options.models or MODELS:
        for opset in options.opsets:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    ours, again = attempt(name, opset, folder)
                except Exception as problem:
                    print(f"{name:20} opset {opset}  {str(problem)[:200]}", flush=True)
                    failed += 1
                    continue
            failed += max(ours, again or 0) > ALLOWED
            text = "no onnxruntime" if again is None else f"onnxruntime {again:.1e}"
            print(f"{name:20} opset {opset}  imported {ours:.1e}  {text}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
