"""Makes a folder NAME.antichain of an ONNX file."""

import collections
import dataclasses
import math
import pathlib
import re
import sys

import numpy
import onnx
from onnx import shape_inference

from antichain.error import AntichainError
from antichain.folder import graph_text, write_folder
from antichain.graph_operators import MOST_AXES, text
from antichain.onnx.constants import Constants
from antichain.onnx.messages import DAMAGED, Constant, Node, read_file
from antichain.onnx.rows import ROWS
from antichain.onnx.simplify import simplify
from antichain.refusal import grouped, not_supported
from antichain.translation import WRONG, CommonOperators, Names, Unsupported, Value, attempt
from antichain.translation import refuse_if, unknown

# Every tensor has so many samples while translating: a prime, so that no other extent is equal by chance.
SAMPLES = 251
MOST_LETTERS = 240  # of a node's name; the program reads 256 bytes
LABELS, LOSS = "labels", "loss"


def node_name(name):
    """Returns a name that a node can have: of "/layer1/layer1.0/Conv", "layer1.layer1.0.Conv"."""
    letters = name.removeprefix("/").replace("/", ".").encode()
    return re.sub(rb"[\x00-\x20\x7f-\xff,]", b"_", letters)[:MOST_LETTERS].decode() or "node"


def _is_matrix(part):
    return sum(extent != 1 for extent in part.array.shape) > 1


class Translation(CommonOperators):
    """The nodes made so far, and the ONNX node that is translated. Rows of the table call its methods."""

    def __init__(self, file, constants):
        super().__init__(SAMPLES)
        self.origin, self.opset, self.constants = file.origin, file.opset, constants
        self.nodes, self.weights = [], {}
        self.values = {}  # by the names of the file's tensors; None where it could not be translated
        self.names = Names([LABELS], "~")
        self.initializers = {}  # names of initializers, by the parameters that were made of them
        self.firsts = {}  # names of parameters, by the initializers that they were the first to be made of
        self.file_samples = None
        self.node = None

    # What the node at hand was given

    def given(self, name):
        """Returns what a name stands for: a value, a constant, or None where an input is left out."""
        if not name:
            return None
        found = self.values.get(name) or self.constants.find(name)
        refuse_if(found is None, f"'{self.node.op}' of '{name[:256]}', which no earlier node gives,")
        return found

    def weight(self, constant, what):
        known = isinstance(constant, Constant) and constant.is_float
        refuse_if(not known, f"'{self.node.op}' with {what} that is no float32 constant")
        return constant

    def weight_and_bias(self, weight, bias, what="a weight"):
        """Returns the parts of a node that it was given."""
        parts = {"weight": (weight, what), "bias": (bias, "a bias")}
        return {own: self.weight(*part) for own, part in parts.items() if part[0] is not None}

    def integers(self, values, what, otherwise=()):
        """Returns the integers of an attribute, or of a constant input."""
        if isinstance(values, Constant):
            return values.integers
        refuse_if(isinstance(values, Value), f"'{self.node.op}' with {what} that are computed")
        return [int(i) for i in (otherwise if values is None else values)]

    def number(self, value, what):
        """Returns the number of an attribute, or of a constant input; None where it is left out."""
        if value is None or isinstance(value, (int, float)):
            return value
        number = self.weight(value, what).number
        refuse_if(number is None, f"'{self.node.op}' with {what} of several numbers")
        return number

    @staticmethod
    def float32(value):
        """Returns the number of the fewest digits that gives the same float32: 1e-5, not 9.99999975e-06."""
        return float(str(numpy.float32(value)))

    @staticmethod
    def text(x):
        return text(x.shape, SAMPLES)

    # What makes nodes

    def unique(self, name):
        return self.names.unique(node_name(name))

    def _name_of(self, parts):
        """A node with parameters has the name that they begin with: "conv1" of conv1.weight. So they keep the
        names of the initializers. A parameter without a name of its own is the node's."""
        for own, part in parts.items():
            ending = f".{own}" if own else ""
            prefix = part.name.removesuffix(ending)
            if part.name.endswith(ending) and prefix == node_name(prefix) and prefix not in self.names.taken:
                return prefix
        return self.node.called or self.node.op

    def _shared(self, parts):
        """Returns which parameters of a node are those of an earlier one, by its names of them. Exporters
        store equal tensors once, so a vector is shared only beside a matrix."""
        firsts = {own: self.firsts.get(part.name) for own, part in parts.items()}
        shared = {own: first for own, first in firsts.items() if first and _is_matrix(parts[own])}
        nodes = {first.rpartition(".")[0] for first in shared.values()}
        for own, part in parts.items():
            for node in nodes:
                first = f"{node}.{own}"
                if part.name and self.initializers.get(first) == part.name:
                    shared[own] = first
        return shared

    def _take_part(self, name, own, part, shape):
        said = f"a {own.replace('_', ' ') or 'factor'} of {text(part.array.shape)} where {text(shape)}"
        fits = part.array.size == math.prod(shape)
        refuse_if(not fits, f"'{self.node.op}' with {said} is expected")
        self.constants.take(part.array.size)
        full = f"{name}.{own}" if own else name
        self.weights[full] = part.array.reshape(shape)
        if part.name:
            self.initializers[full] = part.name
            self.firsts.setdefault(part.name, full)

    def new_node(self, op, inputs, options, helper, parts, shapes):
        """Adds a node, whose parameters and buffers are constants, and returns its name."""
        name, shared = self.unique(self._name_of(parts)), self._shared(parts)
        for own, extents in shapes.items():
            if own not in shared:
                self._take_part(name, own, parts[own], extents)
                continue
            first, array = self.weights[shared[own]], parts[own].array
            alike = first.shape == tuple(extents) and numpy.array_equal(first.ravel(), array.ravel())
            what = f"the weight '{parts[own].name[:256]}' that another node uses otherwise"
            refuse_if(not alike, what)
        entry = {"name": name, "op": op, "inputs": inputs}
        more = {"options": options, "shared": shared}
        self.nodes.append({**entry, **{key: value for key, value in more.items() if value}})
        return name

    def enter(self, name, value):
        known = name in self.constants or name in self.values
        refuse_if(known, f"a second tensor of the name '{name[:256]}'")
        self.values[name] = value


def dims_of(info):
    """Returns the extents of a tensor, 0 where they are open."""
    return [d.dim_value for d in info.type.tensor_type.shape.dim]


def add_input(t, info):
    def refuse(why, hint):
        raise AntichainError(f"{t.origin}: the input '{info.name[:256]}' {why}: {hint}")

    dims = dims_of(info)
    if info.type.tensor_type.elem_type != onnx.TensorProto.FLOAT:
        refuse("is no float32 tensor", "networks compute with float32")
    if not 2 <= len(dims) <= MOST_AXES:
        refuse(f"has {len(dims)} axes", f"samples are the first of 2 to {MOST_AXES}")
    for i, extent in enumerate(dims[1:], 1):
        if not 1 <= extent <= 1 << 20:
            refuse(f"has no fixed extent of axis {i}", "export it with all but the samples fixed")
    if dims[0] > 0:
        t.file_samples = dims[0]
    name = t.unique("images" if info.name == LABELS else info.name)  # which is what a data set fills
    t.enter(info.name, dataclasses.replace(unknown((SAMPLES, *dims[1:])), node=name))
    return {"name": name, "shape": dims[1:], "dtype": "float32"}


def inferred(file):
    """Returns what stands for tensors, by the file's own shapes: so nodes behind one that can't be translated
    can be."""
    try:
        onnx.checker.check_model(file.model)  # infer_shapes may crash where nodes are in another order
        graph = shape_inference.infer_shapes(file.model).graph
    except Exception:  # whatever the file has that the package does not know
        graph = file.model.graph
    shapes = {info.name: dims_of(info) for info in [*graph.value_info, *graph.output]}
    fixed = {name: dims[1:] for name, dims in shapes.items() if len(dims) > 1 and min(dims[1:]) > 0}
    return {name: unknown((SAMPLES, *rest)) for name, rest in fixed.items()}


def translate_node(t, node):
    """Enters the values of a node's outputs. Throws Unsupported."""
    t.node, t.plain_forms = node, {}
    made = t.constants.fold(node)
    if made is None:
        refuse_if(node.op not in ROWS, f"'{node.op}'")
        given = [t.given(name) for name in node.inputs]
        made = ROWS.make(t, node.op, given, ROWS.known(node.op, node.attributes))
    for name, value in zip(node.outputs, made if isinstance(made, list) else [made]):
        if isinstance(value, Constant):
            t.constants.add(name, value)
        elif name and value is not None:
            t.enter(name, value)


def translate_nodes(t, file, nodes):
    """Translates all nodes, and throws one AntichainError that says all that can't be."""
    shapes, strange = None, False

    def make(node):
        lost = node.op in ROWS and any(t.values.get(name, t) is None for name in node.inputs)
        refuse_if(lost, "")  # it is behind what was not translated
        translate_node(t, node)

    def stand_in(node):
        nonlocal shapes, strange
        shapes, strange = inferred(file) if shapes is None else shapes, strange or node.op not in ROWS
        t.values.update((name, shapes.get(name)) for name in node.outputs if name not in t.values)

    problems = attempt(nodes, make, stand_in)
    if problems:
        clauses = grouped((said, f"{said} at node '{node.called}'", node.called) for node, said in problems)
        hint = f": the operators are {', '.join(sorted(ROWS))}" if strange else ""
        raise AntichainError(f"{file.origin}: {not_supported(clauses)}{hint}")


def add_loss(t, output):
    t.node = Node("output", "output", [output], [])
    logits = t.tensor(t.given(output))
    refuse_if(logits.rank != 2, f"an output of {logits.rank} axes (it is N x classes)")
    last = t.plain(logits).node
    t.nodes.append({"name": t.unique(LOSS), "op": "softmax_cross_entropy", "inputs": [last, LABELS]})


def without_softmax(nodes, output):
    """A softmax at the end is a part of the loss that is added."""
    ends = (node for node in nodes if node.op in ("Softmax", "LogSoftmax") and node.outputs == [output])
    return next((node.inputs[0] for node in ends if len(node.inputs) == 1), output)


def model_name(path):
    """Returns the name of the file without its ending, in letters that names of models have."""
    name = re.sub(r"[^A-Za-z0-9.-]", "_", pathlib.Path(path).stem)
    return (f"onnx{name}" if name[:1] in ("", "-", ".") else name)[:64]


def made_by(file):
    """Returns the exporter and the opset, on one line."""
    model = file.model
    words = (re.sub(r"[\x00-\x1f\x7f]", "", w)[:64] for w in (model.producer_name, model.producer_version))
    return f"{' '.join(words)} (ONNX, opset {file.opset})"


def warn_of_folded_norms(file, nodes):
    """Warns of convolutions where a file has no batch norm. Their biases do not tell whether a batch norm was
    folded into them: that of a fresh batch norm is 0, and exporters leave it out."""
    ops = collections.Counter(node.op for node in nodes)
    if not ops["Conv"] or ops["BatchNormalization"] or file.model.producer_name.startswith("antichain"):
        return
    print(
        f"antichain: warning: {file.origin} has convolutions ({ops['Conv']}) and no batch norm: if the model "
        "has batch norms, the exporter has folded them into the convolutions, so they are gone, and training "
        "differs from the original (docs/bring-your-model.md says how to keep them)",
        file=sys.stderr,
    )


def import_onnx(path, folder):
    """Writes the network of an ONNX file as a folder NAME.antichain. Throws AntichainError."""
    try:
        file = read_file(path)
        constants = Constants(file)
        output = without_softmax(file.nodes, file.model.graph.output[0].name)
        nodes, (output,) = simplify(file.nodes, [output], constants)
        t = Translation(file, constants)
        inputs = [add_input(t, info) for info in file.model.graph.input if info.name not in constants]
        translate_nodes(t, file, nodes)
        add_loss(t, output)
        inputs.append({"name": LABELS, "shape": [], "dtype": "int32"})
        graph = graph_text(model_name(path), made_by(file), inputs, t.nodes)
    except Unsupported as problem:
        raise AntichainError(f"{path}: {problem} is not supported") from problem
    except WRONG as problem:  # fields of other types than the format has
        raise AntichainError(f"{path}: {DAMAGED} ({' '.join(str(problem).split())})") from problem
    write_folder(folder, graph, t.weights)
    warn_of_folded_norms(file, nodes)
