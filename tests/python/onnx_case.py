"""What tests of ONNX files share: a folder in which files are imported, the parts of a small file, and what
was recorded of PyTorch's exporters."""

import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys

import numpy
from onnx import TensorProto, helper, numpy_helper

from antichain import safetensors
from antichain.onnx.importing import import_onnx
from in_a_folder import InAFolder

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/scripts"))
PROGRAM = os.environ["ANTICHAIN"]
try:
    import onnx_models
except SystemExit:  # torch or torchvision is absent
    onnx_models = None
try:
    import onnxruntime
except ImportError:
    onnxruntime = None

# PyTorch computes in float32, which rounds at 6e-8; behind a hundred layers the logits differ by some 1e-6.
MOST_ERROR = 1e-4


class Folder(InAFolder):
    def imported(self, model, name="net"):
        """Imports a file, or a model that is written to one. Returns its graph.json, weights and warnings."""
        file = model
        if not isinstance(model, pathlib.Path):
            file = self.folder / "net.onnx"
            file.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            import_onnx(file, self.folder / f"{name}.antichain")
        return *self.read(name), said.getvalue()

    def read(self, name):
        folder = self.folder / f"{name}.antichain"
        return json.loads((folder / "graph.json").read_text()), safetensors.read(
            folder / "weights.safetensors"
        )

    def program(self, *words, code=0, **options):
        command = [PROGRAM, *map(str, words)]
        ran = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, **options)
        self.assertEqual(ran.returncode, code, ran.stderr)
        return ran.stdout

    def command(self, *words, code=0):
        command = [sys.executable, "-m", "antichain.onnx", *map(str, words)]
        ran = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(ran.returncode, code, ran.stderr)
        return ran.stdout + ran.stderr


def node(op, inputs, output, name="", **attributes):
    return helper.make_node(op, inputs, [output], name, **attributes)


class Parts:
    """The parts of a small file, which a test changes before it is written."""

    def __init__(self):
        self.input, self.type, self.dims, self.opset = "images", TensorProto.FLOAT, ["n", 2, 4, 4], 13
        self.constants = {"w": numpy.full((2, 2, 4, 4), 0.5, "f")}
        self.nodes = [node("Conv", ["images", "w"], "c", "first"), node("Flatten", ["c"], "y", "last")]
        self.output = "y"

    def model(self):
        inputs = [helper.make_tensor_value_info(self.input, self.type, self.dims)]
        outputs = [helper.make_tensor_value_info(self.output, TensorProto.FLOAT, ["n", 2])]
        tensors = [numpy_helper.from_array(a, name) for name, a in self.constants.items()]
        graph = helper.make_graph(self.nodes, "net", inputs, outputs, tensors)
        return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", self.opset)])
