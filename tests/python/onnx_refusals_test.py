"""These tests are about ONNX files that can't be translated, or are damaged: they are refused by a sentence
that names the nodes, and what is there stays."""

import operator
import os
import unittest
import unittest.mock

import numpy
import onnx
from onnx import TensorProto, helper

from antichain import AntichainError
from antichain.onnx.exporting import export_onnx
from antichain.onnx.importing import import_onnx
from onnx_case import Folder, Parts, node


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
