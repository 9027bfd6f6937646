"""These tests are about ONNX files: what PyTorch exports becomes a network with the same logits, what
Antichain writes computes the same and is read as the same network, and what can't be translated is refused
by a sentence that names the nodes. tests/scripts/onnx_models.py does so with every model and opset."""

import contextlib
import io
import json
import operator
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

from antichain import AntichainError, safetensors
from antichain.folder import graph_text, write_folder
from antichain.graph_operators import DEFAULTS, output_shape, parts_of
from antichain.onnx.exporting import FUNCTIONS, export_onnx
from antichain.onnx.importing import import_onnx
from in_a_folder import InAFolder

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/golden/onnx"
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
needs_torchvision = unittest.skipIf(onnx_models is None, "needs torch and torchvision")

# PyTorch exports each model with this opset.
MODELS = {"mobilenet_v3_small": 11, "resnet18": 13, "shufflenet_v2_x0_5": 17}
if os.environ.get("ANTICHAIN_LARGE_TESTS"):
    MODELS.update(convnext_tiny=11, densenet121=17, efficientnet_b0=13, mobilenet_v2=17, squeezenet1_1=11)
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
        begin = time.monotonic()
        graph, _, _ = self.imported(parts.model())
        self.assertEqual(len(graph["nodes"]), count + 3)
        # It takes some seconds on one core. Time that grows with the square would take hours.
        self.assertLess(time.monotonic() - begin, 120)

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


class Refusals(Folder):
    def refused(self, model, *parts):
        with self.assertRaises(AntichainError) as refused:
            self.imported(model)
        for part in parts:
            self.assertIn(part, str(refused.exception))
        self.assertNotIn("\n", str(refused.exception))
        return str(refused.exception)

    def changed(self, change, *parts):
        """Changes Parts before they are written, and the model where `change` returns a function of it."""
        file = Parts()
        last = change(file)
        model = file.model()
        if callable(last):
            last(model)
        return self.refused(model, *parts)

    def test_what_cannot_be_translated_is_refused_by_the_node(self):
        self.imported(Parts().model())

        def set_(at, name, value):
            return lambda p: p.nodes[at].attribute.append(helper.make_attribute(name, value))

        def field(at, name, value):
            return lambda p: setattr(p.nodes[at], name, value)

        hardmax = field(1, "op_type", "Hardmax")
        said = self.changed(hardmax, "net.onnx: 'Hardmax' at node 'last' is not supported")
        self.assertIn("the operators are Abs, Add, AveragePool", said)
        self.changed(field(1, "domain", "com.microsoft"), "'com.microsoft.Flatten' at node 'last'")
        said = self.changed(set_(1, "axis", 2), "Flatten at another axis than 1 at node 'last'")
        self.assertNotIn("the operators are", said)  # it is one of them
        self.changed(set_(0, "auto_pad", "SIDEWAYS"), "auto_pad SIDEWAYS at node 'first'")
        self.changed(set_(0, "strides", [1, -1]), "strides of -1 at node 'first'")
        self.changed(set_(0, "strides", 2.5), "'Conv' with these shapes and options")
        self.changed(set_(0, "group", 3), "'Conv' with these shapes and options", "'first'")
        for kernel in ([0, 4], [-3, 4], [1 << 40, 4], [5, 5]):
            self.changed(set_(0, "kernel_shape", kernel), "and a weight of [4, 4] at node 'first'")

        def inputs(at, i, name):
            return lambda p: operator.setitem(p.nodes[at].input, i, name)

        self.changed(inputs(0, 1, "images"), "'Conv' with a weight that is no float32 constant")
        self.changed(inputs(1, 0, "nowhere"), "'Flatten' of 'nowhere', which no earlier node gives")
        self.changed(lambda p: p.nodes.reverse(), "'Flatten' of 'c', which no earlier node gives")
        self.changed(lambda p: lambda m: m.graph.ClearField("output"), "net.onnx has no output")
        self.changed(lambda p: setattr(p, "output", "c"), "an output of 4 axes")
        self.changed(
            lambda p: p.nodes.insert(1, node("Relu", ["images"], "c")), "two nodes or inputs give 'c'"
        )

    def test_inputs_opsets_and_tensors(self):
        self.changed(
            lambda p: operator.setitem(p.dims, 2, "h"), "the input 'images' has no fixed extent of axis 2"
        )
        self.changed(lambda p: setattr(p, "type", TensorProto.INT64), "the input 'images' is no float32")
        self.changed(lambda p: setattr(p, "opset", 9), "is of opset 9", "11 to 21")
        self.changed(lambda p: setattr(p, "opset", 30), "is of opset 30")

        def weight(**fields):
            def change(model):
                tensor = model.graph.initializer[0]
                for name, value in fields.items():
                    if name == "dims":
                        tensor.dims[:] = value
                    else:
                        setattr(tensor, name, value)

            return lambda p: change

        self.changed(weight(dims=[2, 2, 4, 5]), "the tensor 'w'", "256 bytes")
        self.changed(weight(dims=[1, 1 << 30, 1 << 30, 1 << 30]), "'w'")
        self.changed(weight(data_type=3), "the tensor 'w' has the type 3 (INT8)")
        self.changed(weight(data_type=10), "has the type 10 (FLOAT16)")

        def twice(model):
            model.graph.initializer.append(model.graph.initializer[0])

        self.changed(lambda p: twice, "two initializers have the name 'w'")

    def test_a_weight_of_two_nodes(self):
        file = Parts()
        same = {"auto_pad": "SAME_UPPER"}
        file.nodes[:1] = [node("Conv", ["images", "w"], "d", "c0", **same)]
        file.nodes.insert(1, node("Conv", ["d", "w"], "c", "c1", **same))
        graph, weights, _ = self.imported(file.model())
        self.assertEqual([n.get("shared") for n in graph["nodes"][:2]], [None, {"weight": "c0.weight"}])
        self.assertEqual([*weights], ["c0.weight"])
        export_onnx(self.folder / "net.antichain", self.folder / "again.onnx")
        initializers = [t.name for t in onnx.load(self.folder / "again.onnx").graph.initializer]
        self.assertEqual(initializers, ["c0.weight"])
        self.assertEqual(self.imported(self.folder / "again.onnx", "again")[0]["nodes"], graph["nodes"])
        self.program("info", "--graph", "net.antichain")

    def test_all_that_is_not_supported_is_said_at_once(self):
        def change(p):
            p.nodes[1:] = [
                node("Erf", ["c"], "d", "a"),
                node("Tan", ["d"], "e", "b"),
                node("Tan", ["e"], "f", "b2"),
                node("Softmax", ["f"], "g", "soft", axis=0),
                node("Flatten", ["g"], "y", "last"),
            ]

        self.changed(change, "'Erf' at node 'a'; 'Tan' at node 'b' and 1 more; Softmax over axis 0 at node")

    def test_samples_are_called_n(self):
        def change(p):
            p.constants["h"] = numpy.full((4, 4), 2, "f")
            p.nodes[1:] = [node("Mul", ["images", "h"], "d"), node("Flatten", ["d"], "y")]

        self.changed(change, "a product of N x 2 x 4 x 4 and a constant of 4 x 4")

    def test_damaged_files(self):
        whole = Parts().model().SerializeToString()
        for data in (b"", b'{"format": "antichain graph"}', whole[: len(whole) // 2], b"\xff" * 20):
            self.refused(data, "net.onnx is no ONNX file", "the file is truncated or damaged")
        model = Parts().model()
        model.graph.node.extend([helper.make_node("", [], [])] * 200_001)
        self.refused(model, "200000 nodes")
        model = Parts().model()
        model.graph.node[0].input.extend(["c"] * 70_000)
        self.refused(model, "of up to 70002 inputs")
        with self.assertRaisesRegex(AntichainError, "can't read /nowhere/net.onnx"):
            import_onnx("/nowhere/net.onnx", self.folder / "net.antichain")

    def test_fields_of_wrong_types(self):
        parts = Parts()
        parts.nodes.insert(0, node("Constant", [], "k", value="no tensor"))
        self.refused(parts.model(), "net.onnx: the file is truncated or damaged")
        text = Parts().model().SerializeToString().replace(b"images", b"\xff\xfe\xff\xfe\xff\xfe")
        self.refused(text, "net.onnx")
        # The inference of shapes in onnx crashes on nodes in another order.
        parts, relu = Parts(), node("Relu", ["y"], "h")
        parts.nodes[:] = [node("Conv", ["h", "w"], "c"), node("Hardmax", ["c"], "y"), relu]
        self.refused(parts.model(), "'Hardmax'", "'Conv' of 'h', which no earlier node gives")

    def test_external_data(self):
        def external(**entries):
            model = Parts().model()
            tensor = model.graph.initializer[0]
            (self.folder / "w.bin").write_bytes(b"1234" + tensor.raw_data)
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in entries.items():
                tensor.external_data.add(key=key, value=value)
            return model

        weights = self.imported(external(location="w.bin", offset="4"))[1]
        self.assertTrue((weights["w.weight"] == 0.5).all() if "w.weight" in weights else weights)
        os.symlink("w.bin", self.folder / "link.bin")
        for place in ("", "..", "../w.bin", "/etc/passwd", "w.bin\0x", "link.bin", "absent"):
            self.refused(external(location=place), "external data are read from files in the same folder")
        self.refused(
            external(location="w.bin", length="1000"), "lie at bytes 0 to 1000 of w.bin, which has 260"
        )
        self.refused(external(location="w.bin", offset="-1"), "a number of bytes is expected")

    def test_the_command(self):
        (self.folder / "net.onnx").write_bytes(b"")
        said = self.command("import", "net.onnx", "net.antichain", code=3)
        self.assertTrue(said.startswith("antichain: net.onnx is no ONNX file"), said)
        self.assertIn(
            "name their network by --model or --graph", self.command("export", "w.h5", "net.onnx", code=3)
        )
        self.assertIn("there is no model", self.command("export", "w.h5", "net.onnx", "--model=no", code=2))
        for words in ([], ["import", "net.onnx"], ["import", "net.onnx", ""], ["import", "a", "b", "--c"]):
            said = self.command(*words, code=2)
            self.assertTrue(said.startswith("antichain: ") and said.count("\n") == 1, said)
        with unittest.mock.patch.dict(os.environ, ANTICHAIN="/nowhere"):
            said = self.command("export", "w.h5", "net.onnx", "--model=no", code=3)
        self.assertEqual(said, "antichain: the program /nowhere can't be started: No such file or directory\n")

    def test_what_is_there_stays(self):
        (self.folder / "net.onnx").write_bytes(Parts().model().SerializeToString())
        other = self.folder / "other"
        other.mkdir()
        for name, text in {"notes": "mine", "graph.json": '{"mine": 1}'}.items():
            (other / name).write_text(text)
            said = self.command("import", "net.onnx", "other", code=3)
            self.assertIn("other is a folder of something else", said)
            self.assertEqual((other / name).read_text(), text)
        self.command("import", "net.onnx", "net.antichain")
        self.command("import", "net.onnx", "net.antichain")  # which it made
        before = self.read("net")[0]
        for file, code in {"net.antichain/graph.json": 2, "net.antichain": 2, "other/a/b.onnx": 3}.items():
            self.command("export", "net.antichain", file, code=code)
        self.assertEqual(self.read("net")[0], before)
        (self.folder / "link.onnx").symlink_to("other/notes")
        self.command("export", "net.antichain", "link.onnx")
        self.assertEqual((other / "notes").read_text(), "mine")
        odd = os.fsdecode(b"\xff \n.onnx")
        self.command("export", "net.antichain", odd)
        self.imported(self.folder / odd, "odd")


class Export(Folder):
    def exported(self, name="all"):
        export_onnx(self.folder / f"{name}.antichain", self.folder / f"{name}.onnx")
        return self.folder / f"{name}.onnx"

    def everything(self):
        """Writes a network with every operator, and returns its graph.json."""
        nodes, shapes, weights = [], {"images": (2, 3, 16, 12)}, {}
        random = numpy.random.default_rng(1)

        def add(name, op, *inputs, **options):
            o = {**DEFAULTS.get(op, {}), **options}
            xs = [shapes[x] for x in inputs]
            shapes[name] = output_shape(op, o, xs)
            for own, shape in parts_of(op, o, xs[0]).items():
                kind = "<f4" if own != "num_batches_tracked" else "<i8"
                weights[f"{name}.{own}" if own else name] = numpy.asarray(random.uniform(0.2, 1, shape), kind)
            nodes.append({"name": name, "op": op, "inputs": list(inputs), "options": options})
            return name

        pads = {"before": [1, 2], "after": [0, 3]}
        x = add("conv", "conv2d", "images", out=8, kernel=[3, 5], stride=[1, 2], pad=pads, dilation=[1, 2])
        x = add("bn", "batch_norm", x, momentum=1.0)
        for f in ("gelu", "gelu_tanh", "hardswish", "hardsigmoid", "relu6", "sigmoid", "silu"):
            x = add(f"{f}.sum", "add", x, add(f, "activate", x, function=f))
        x = add("relu.sum", "add", x, add("relu", "relu", x))
        x = add("drop", "dropout", add("deep", "stochastic_depth", x, p=0.1, drop="row"), p=0.2)
        x = add("soft.sum", "add", x, add("soft", "softmax", x))
        x = add("gate", "multiply", x, add("global", "global_average_pool", x))
        x = add("gn", "group_norm", x, groups=4, eps=1e-3)
        x = add("gn2", "group_norm", x, groups=2, affine=False)
        x = add("ln", "layer_norm", x, channels=True, eps=1e-6, bias=False)
        x = add("ln2", "layer_norm", x, over=list(shapes[x][2:]))
        x = add("ln3", "layer_norm", x, over=list(shapes[x][3:]), affine=False)
        x = add("scale", "layer_scale", x)
        x = add("up", "conv_transpose2d", x, out=4, kernel=3, stride=2, pad=1, output_pad=1, groups=2)
        x = add("max", "max_pool", x, kernel=3, stride=[2, 1], pad=[1, 0], ceil_mode=True)
        x = add("mean_pool", "average_pool", x, kernel=3, stride=1, pad=1, count_include_pad=False)
        x = add("larger", "interpolate", x, mode="bilinear", size=[18, 7], align_corners=True)
        x = add("other", "interpolate", x, mode="bilinear", scale=[0.5, 1.5])
        x = add("twice", "interpolate", x, scale=2)
        x = add("cat", "concat", x, add("part", "slice", x, axis=1, begin=1, end=-1, step=2))
        x = add("adaptive", "adaptive_average_pool", x, h=9, w=5)
        x = add("uneven", "adaptive_average_pool", x, h=7, w=4)
        x = add("matrix", "conv2d", x, out=6, kernel=1, bias=False, matrix=True)
        x = add("permute", "permute", x, order=[0, 2, 3, 1])
        x = add("mean", "mean", x, axes=[1], keep_dims=True)
        x = add("grow", "reshape", x, shape=[4, 3, 2])
        x = add("tokens", "linear", x, out=2, bias=False)
        x = add("tokens2", "linear", x, out=2, bias=False, in_first=True)
        x = add("mean2", "mean", x, axes=[3])
        x = add("flat", "reshape", x, shape=[12])
        x = add("fc", "linear", x, out=5, bias=False)
        nodes.append({"name": "loss", "op": "softmax_cross_entropy", "inputs": [x, "labels"]})
        inputs = [{"name": "images", "shape": [3, 16, 12], "dtype": "float32"}]
        inputs.append({"name": "labels", "shape": [], "dtype": "int32"})
        write_folder(
            self.folder / "all.antichain", graph_text("everything", "a test", inputs, nodes), weights
        )
        return self.read("all")[0]

    def test_every_operator_survives_a_round_trip(self):
        graph = self.everything()
        self.program("info", "--graph", "all.antichain")
        onnx.checker.check_model(onnx.load(self.exported()))
        again, weights, _ = self.imported(self.folder / "all.onnx")
        self.program("info", "--graph", "net.antichain")
        own = {n["name"]: n["op"] for n in graph["nodes"] if n["op"] not in ("dropout", "stochastic_depth")}
        read = {n["name"]: n["op"] for n in again["nodes"]}
        # Equal windows are those of an average pool; a permutation comes with the reshape that needs it.
        changed = {n: read.get(n) for n, op in own.items() if read.get(n) != op}
        self.assertEqual(changed, {"adaptive": "average_pool", "permute": None, "grow": "permute"})
        for name, array in self.read("all")[1].items():
            if not name.endswith("num_batches_tracked"):
                array = array.T if name == "tokens2.weight" else array  # ours had the inputs first
            self.assertEqual(weights[name].tobytes(), array.tobytes(), name)

    @unittest.skipIf(onnx_models is None or onnxruntime is None, "needs torch and onnxruntime")
    def test_onnxruntime_computes_every_operator(self):
        self.everything()
        self.imported(self.exported())
        images = onnx_models.torch.randn(2, 3, 16, 12)
        theirs = onnx_models.run_by_onnxruntime(self.folder / "all.onnx", images)
        for name in ("all", "net"):
            ours = onnx_models.Evaluation(self.folder / f"{name}.antichain").logits(images)
            self.assertLess(onnx_models.error(theirs, ours), MOST_ERROR)

    def test_formulas_and_products_are_exported(self):
        """Every function of the table, a parameter, products of matrices, and what has one dimension."""
        table = pathlib.Path(__file__).parents[2] / "layers/elementwise_table.inc"
        functions = dict(re.findall(r"^ROW\((\w+), (\d)", table.read_text(), re.M))
        self.assertEqual(set(functions), set(FUNCTIONS))
        names = sorted(functions)

        def chain(names, first):
            """Applies the functions one after the other, each to the result before."""
            of = lambda i, name: " ".join([name, *[f"s{i}", "x0", "0.5"][: int(functions[name])]])
            return [first, *(of(i, name) for i, name in enumerate(names))]

        def entry(name, op, *inputs, **options):
            return {"name": name, "op": op, "inputs": list(inputs), "options": options}

        nodes = [
            entry("first", "elementwise", "images", steps=chain(names[:16], "add x0 p"), parameter=[3],
                  parameter_axis=1),
            entry("line", "conv2d", "first", out=4, kernel=[1, 3], line=True),
            entry("longer", "conv_transpose2d", "line", out=3, kernel=[1, 3], line=True),
            entry("bn", "batch_norm", "longer", affine=False),
            entry("drop", "stochastic_depth", "bn", p=0.5, drop="channel"),
            entry("second", "elementwise", "images", "drop", steps=chain(names[16:], "add x0 x1")),
            entry("product", "matmul", "second", "images", transpose_b=True),
            entry("flat", "flatten", "product"),
            entry("loss", "softmax_cross_entropy", "flat", "labels"),
        ]
        inputs = [{"name": "images", "shape": [3, 2, 5], "dtype": "float32"}]
        inputs.append({"name": "labels", "shape": [], "dtype": "int32"})
        shapes = {"first": (3,), "line.weight": (4, 3, 3), "line.bias": (4,), "longer.weight": (4, 3, 3)}
        shapes |= {"longer.bias": (3,), "bn.running_mean": (3,), "bn.running_var": (3,)}
        weights = {name: numpy.full(shape, 0.5, "<f4") for name, shape in shapes.items()}
        weights["bn.num_batches_tracked"] = numpy.int64(0)
        text = graph_text("formulas", "a test", inputs, nodes)
        write_folder(self.folder / "all.antichain", text, weights)
        self.program("info", "--graph", "all.antichain")
        onnx.checker.check_model(onnx.load(self.exported()))

    def test_shipped_models_keep_their_weights_and_names(self):
        for name in ("resnet20", "squeezenet1_0", "mobilenet_v3_large", "densenet121"):
            with self.subTest(name):
                self.program("export", "--model", name, "--seed", 3, "--out", "own.antichain")
                graph, weights, _ = self.imported(self.exported("own"))
                own, state = self.read("own")
                here, there = ({n: a.tobytes() for n, a in w.items()} for w in (weights, state))
                self.assertEqual(here, there)
                self.assertEqual(graph["model"], "own")
                here, there = ({n["name"]: n["op"] for n in g["nodes"]} for g in (graph, own))
                self.assertEqual(here, {n: op for n, op in there.items() if op != "dropout"})

    def test_only_products_with_matrices_of_means_are_adaptive_pools(self):
        sides = {"h": 3, "w": 4}
        nodes = [
            {"name": "pool", "op": "adaptive_average_pool", "inputs": ["images"], "options": sides},
            {"name": "flat", "op": "flatten", "inputs": ["pool"]},
            {"name": "fc", "op": "linear", "inputs": ["flat"], "options": {"out": 2}},
            {"name": "loss", "op": "softmax_cross_entropy", "inputs": ["fc", "labels"]},
        ]
        inputs = [{"name": "images", "shape": [3, 5, 7], "dtype": "float32"}]
        weights = {"fc.weight": numpy.ones((2, 36), "f"), "fc.bias": numpy.ones(2, "f")}
        write_folder(self.folder / "own.antichain", graph_text("own", "a test", inputs, nodes), weights)
        graph, _, _ = self.imported(self.exported("own"))
        self.assertEqual(graph["nodes"][0]["op"], "adaptive_average_pool")
        larger, other = (onnx.load(self.folder / "own.onnx") for _ in range(2))
        larger.graph.input[0].type.tensor_type.shape.dim[2].dim_value = 6
        with self.assertRaisesRegex(AntichainError, "of another size than the image at node 'pool'"):
            self.imported(larger)
        tensor = other.graph.initializer[1]
        tensor.raw_data = bytes([0x40]) * len(tensor.raw_data)
        sentence = "a second factor that is no float32 constant at node 'pool'"
        with self.assertRaisesRegex(AntichainError, sentence):
            self.imported(other)

    def test_attributes_of_zero_keep_their_type(self):
        self.everything()
        nodes = onnx.load(self.exported()).graph.node
        norm = next(n for n in nodes if n.op_type == "BatchNormalization")
        momentum = next(a for a in norm.attribute if a.name == "momentum")
        self.assertEqual((momentum.type, momentum.f), (onnx.AttributeProto.FLOAT, 0))

    def test_what_onnx_lacks_is_refused(self):
        graph = self.everything()
        graph["nodes"][0]["op"] = "no_operator"
        (self.folder / "all.antichain/graph.json").write_text(json.dumps(graph))
        sentence = "node 'conv': ONNX has no operator for our 'no_operator'"
        with self.assertRaisesRegex(AntichainError, sentence):
            self.exported()
        (self.folder / "all.antichain/weights.safetensors").unlink()
        with self.assertRaisesRegex(AntichainError, "can't read .*weights.safetensors"):
            self.exported()

    @unittest.skipIf(onnx_models is None or onnxruntime is None, "needs torchvision and onnxruntime")
    def test_onnxruntime_runs_what_is_exported(self):
        torch = onnx_models.torch
        for name in ("resnet18", "mobilenet_v3_large", "convnext_tiny", "efficientnet_b0"):
            with self.subTest(name):
                model, images = onnx_models.made(name, side=224)
                state = {n: t.numpy() for n, t in model.state_dict().items()}
                safetensors.write(self.folder / "w.safetensors", state)
                self.command("export", "w.safetensors", "net.onnx", "--model", name, "--form", "imagenet")
                with torch.no_grad():
                    theirs = onnx_models.run_by_onnxruntime(self.folder / "net.onnx", images)
                    self.assertLess(onnx_models.error(theirs, model(images)), MOST_ERROR)
