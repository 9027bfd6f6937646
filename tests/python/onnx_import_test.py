"""These tests are about what comes in from ONNX files: what PyTorch exports becomes a network with the same
logits. tests/scripts/onnx_models.py does so with every model and opset."""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

import numpy
import onnx
from onnx import numpy_helper

from antichain import safetensors
from antichain.onnx.exporting import export_onnx
from onnx_case import Folder, MOST_ERROR, Parts, ROOT, node, onnx_models

GOLDEN = ROOT / "tests/golden/onnx"
# PyTorch exports each model with this opset.
MODELS = {"mobilenet_v3_small": 11, "resnet18": 13, "shufflenet_v2_x0_5": 17}
if os.environ.get("ANTICHAIN_LARGE_TESTS"):
    MODELS.update(convnext_tiny=11, densenet121=17, efficientnet_b0=13, mobilenet_v2=17, squeezenet1_1=11)
needs_torchvision = unittest.skipIf(onnx_models is None, "needs torch and torchvision")


class Import(Folder):
    @unittest.skipIf(onnx_models is None, "needs torch")
    def test_what_pytorch_wrote_computes_its_logits(self):
        recorded, state = (safetensors.read(GOLDEN / f"{n}.safetensors") for n in ("logits", "state"))
        for opset in (11, 17, 21):
            with self.subTest(opset):
                graph, weights, said = self.imported(GOLDEN / f"opset{opset}.onnx")
                self.assertEqual((graph["model"], said.count("batch norm")), (f"opset{opset}", 2))
                images, logits = (onnx_models.torch.from_numpy(recorded[n]) for n in ("images", "logits"))
                ours = onnx_models.Evaluation(self.folder / "net.antichain").logits(images)
                # Sums of a hundred products round to some 1e-6 of the largest logit.
                self.assertLess(onnx_models.error(ours, logits.double()), 1e-5)
                for name in ("layer_scale", "norm2.bias", "mix.weight", "tokens.bias", "fc.weight"):
                    self.assertEqual(weights[name].tobytes(), state[name].tobytes(), name)
                self.program("info", "--graph", "net.antichain")

    @needs_torchvision
    def test_models_of_torchvision(self):
        onnx_models.torch.set_num_threads(1)
        for name, opset in MODELS.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                ours, again = onnx_models.attempt(name, opset, folder)
                self.assertLess(ours, MOST_ERROR)
                if again is not None:
                    self.assertLess(again, MOST_ERROR)

    def test_a_hundred_thousand_nodes_are_read_in_seconds(self):
        count = 100_000
        nodes = [node("Relu" if i % 2 else "Sigmoid", [f"r{i}"], f"r{i + 1}") for i in range(count)]
        parts = Parts()
        parts.nodes = [node("Conv", ["images", "w"], "r0"), *nodes, node("Flatten", [f"r{count}"], "y")]
        begin = time.process_time()
        graph, _, _ = self.imported(parts.model())
        self.assertEqual(len(graph["nodes"]), count + 3)
        # It takes some seconds on one core. Time that grows with the square would take hours.
        self.assertLess(time.process_time() - begin, 120)

    def test_a_run_of_an_imported_network_needs_no_python(self):
        self.program("export", "--model", "resnet20", "--seed", 3, "--out", "own.antichain")
        export_onnx(self.folder / "own.antichain", self.folder / "net.onnx")
        self.command("import", "net.onnx", "net.antichain")
        self.assertEqual(self.read("net")[1].keys(), self.read("own")[1].keys())
        words = ("--dataset", "synthetic", "--batch", 16, "--microbatches", 4, "--steps", 2, "--seed", 3)
        states = []
        for name in ("own", "net"):
            train = ("train", "--graph", f"{name}.antichain", "--json", f"{name}.json", *words)
            self.program(*train, "--local", 1, "--checkpoint", name, env={"PATH": "/nowhere"})
            states.append(json.loads((self.folder / f"{name}.json").read_text())["state"])
        self.assertEqual(*states)
        # What was trained goes out, too.
        self.command("export", "net", "trained.onnx", "--graph", "net.antichain")
        trained = {
            t.name: numpy_helper.to_array(t)
            for t in onnx.load(self.folder / "trained.onnx").graph.initializer
        }
        self.assertTrue((trained["conv1.weight"] != self.read("net")[1]["conv1.weight"]).any())

    def test_names_of_ours_are_kept_free(self):
        parts = Parts()
        parts.input = "labels"
        parts.nodes[0].input[0] = "labels"
        graph, _, _ = self.imported(parts.model())
        self.assertEqual([i["name"] for i in graph["inputs"]], ["images", "labels"])

    def test_what_newer_exporters_write(self):
        """Shapes of constants, and a gate that is expanded to the shape of what it multiplies."""
        parts = Parts()
        parts.nodes[:] = [
            node("GlobalAveragePool", ["images"], "g"),
            node("Expand", ["g", "s4"], "e"),
            node("Relu", ["images"], "c"),
            node("Mul", ["c", "e"], "m"),
            node("Shape", ["w"], "s", end=1),
            node("CastLike", ["one", "c"], "o"),
            node("Expand", ["o", "s"], "scale"),
            node("Sub", ["scale", "scale"], "zero"),
            node("BatchNormalization", ["m", "scale", "zero", "zero", "scale"], "n"),
            node("Flatten", ["n"], "y"),
        ]
        parts.constants.update(s4=numpy.array([1, 2, 4, 4]), one=numpy.float64(1))
        graph, _, _ = self.imported(parts.model())
        ops = ["global_average_pool", "relu", "multiply", "batch_norm", "flatten", "softmax_cross_entropy"]
        self.assertEqual([n["op"] for n in graph["nodes"]], ops)

    def test_folded_batch_norms_are_told(self):
        said = self.imported(Parts().model())[2]
        self.assertIn("has convolutions (1) and no batch norm", said)
        self.assertIn("training differs from the original", said)
        model = Parts().model()
        model.producer_name = "antichain"  # which folds nothing
        self.assertEqual(self.imported(model)[2], "")

    def test_without_a_package_that_it_needs(self):
        for package in ("numpy", "onnx"):
            script = f"import runpy, sys; sys.modules[{package!r}] = None; "
            script += "runpy.run_module('antichain.onnx', run_name='__main__')"
            ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
            self.assertEqual(ran.returncode, 3)
            advice = f"pip install {package}, or Debian's python3-{package}"
            self.assertRegex(ran.stderr, f"^antichain: .* {advice}\n$")


class Formulas(Folder):
    def test_functions_of_tensors_and_numbers(self):
        parts = Parts()
        parts.constants |= {"two": numpy.float32([2]), "half": numpy.float32(0.5)}
        parts.nodes[1:] = [
            node("Tanh", ["c"], "t"),
            node("Sub", ["c", "half"], "d"),
            node("Pow", ["d", "two"], "p"),
            node("Max", ["t", "p", "c"], "m"),
            node("Greater", ["m", "half"], "g"),
            node("Div", ["m", "two"], "h"),
            node("Where", ["g", "h", "half"], "w2"),
            node("LeakyRelu", ["w2"], "l", alpha=0.25),
            node("Mul", ["l", "half"], "s"),
            node("Flatten", ["s"], "y", "last"),
        ]
        graph, *_ = self.imported(parts.model())
        steps = [step for n in graph["nodes"] if n["op"] == "elementwise" for step in n["options"]["steps"]]
        self.assertEqual(
            steps,
            ["tanh x0", "subtract x0 0.5", "power x0 2.0", "maximum x0 x1", "maximum x0 x1"]
            + ["greater x0 0.5", "divide x0 2.0", "where x0 x1 0.5", "leaky_relu x0 0.25", "multiply x0 0.5"],
        )
