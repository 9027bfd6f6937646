"""These tests are about what goes out into ONNX files: it computes the same and is read as the same
network."""

import json
import pathlib
import re
import unittest

import numpy
import onnx

from antichain import AntichainError, safetensors
from antichain.folder import graph_text, write_folder
from antichain.graph_operators import DEFAULTS, output_shape, parts_of
from antichain.onnx.exporting import FUNCTIONS, export_onnx
from onnx_case import Folder, MOST_ERROR, onnx_models, onnxruntime


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

    def test_a_mask_that_is_made_of_words(self):
        def entry(name, op, *inputs, **options):
            return {"name": name, "op": op, "inputs": list(inputs), "options": options}

        nodes = [
            entry("words", "embedding", "text", rows=4, width=2),
            entry("there", "elementwise", "text", steps=["greater x0 0"]),
            entry("mask", "reshape", "there", shape=[5, 1]),
            entry("masked", "elementwise", "words", "mask", steps=["multiply x0 x1"]),
            entry("places", "constant", "text", shape=[5, 2], values=[*range(10)]),
            entry("sum", "add", "masked", "places"),
            entry("flat", "reshape", "sum", shape=[10]),
            entry("loss", "softmax_cross_entropy", "flat", "labels"),
        ]
        inputs = [{"name": "text", "shape": [5], "dtype": "int32"}]
        inputs.append({"name": "labels", "shape": [], "dtype": "int32"})
        weights = {"words.weight": numpy.arange(8, dtype="<f4").reshape(4, 2)}
        write_folder(self.folder / "all.antichain", graph_text("text", "a test", inputs, nodes), weights)
        self.program("info", "--graph", "all.antichain")
        model = onnx.load(self.exported())
        onnx.checker.check_model(model)
        self.assertEqual([n.output[0] for n in model.graph.node if n.op_type == "Cast"][0], "text/numbers")
        if onnxruntime is not None:
            text = numpy.array([[1, 2, 0, 3, 0]], numpy.int32)
            words = weights["words.weight"][text] * (text > 0)[..., None] + numpy.arange(10.0).reshape(5, 2)
            theirs = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"text": text})[0]
            numpy.testing.assert_array_equal(theirs, words.reshape(1, 10))

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
