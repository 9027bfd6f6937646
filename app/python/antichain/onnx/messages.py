"""Reads an ONNX file, and refuses in one sentence what is damaged or can't be a network."""

import dataclasses
import math
import pathlib

import numpy
import onnx

from antichain.error import AntichainError
from antichain.onnx.names import NEWEST_OPSET, OLDEST_OPSET
from antichain.onnx.shapes import text
from antichain.translation import Unsupported

MOST_BYTES, MOST_EXTERNAL_BYTES = 2 << 30, 8 << 30
MOST_NODES, MOST_INPUTS = 200_000, 65_536  # as graph.json
TYPES = {1: "<f4", 6: "<i4", 7: "<i8", 9: "?", 11: "<f8"}  # of tensors that are read
FIELDS = {1: "f", 2: "i", 3: "s", 4: "t", 6: "floats", 7: "ints"}  # of attributes, by their types
DAMAGED = "the file is truncated or damaged"


@dataclasses.dataclass
class Node:
    name: str
    op: str
    inputs: list  # "" stands for one that is left out
    outputs: list
    attributes: dict = dataclasses.field(default_factory=dict)

    def has(self, i):
        return i < len(self.inputs) and self.inputs[i] != ""

    def get(self, name, otherwise):
        """Returns an attribute, which has the type of `otherwise`."""
        value = self.attributes.get(name, otherwise)
        if isinstance(otherwise, (int, float, str)) and type(value) is not type(otherwise):
            raise Unsupported(f"'{self.op}' with a {name} that is no {type(otherwise).__name__}")
        return value

    def ints(self, name, otherwise=()):
        return [int(i) for i in self.attributes.get(name, otherwise)]

    @property
    def called(self):
        return (self.name or next(iter(self.outputs), ""))[:256]


@dataclasses.dataclass(frozen=True)
class Constant:
    """A constant: float32, or int64."""

    name: str
    array: object

    @property
    def is_float(self):
        return self.array.dtype.kind == "f"

    @property
    def number(self):
        """The one number that it has, or None where it has several."""
        return self.array.item() if self.array.size == 1 else None


def numbers_of(tensor, origin):
    """Returns a tensor of the file as a Constant."""

    def refuse(why, hint):
        raise AntichainError(f"{origin}: the tensor '{tensor.name[:256]}' {why}: {hint}")

    if tensor.data_type not in TYPES:
        known = onnx.TensorProto.DataType.values()
        said = (
            onnx.TensorProto.DataType.Name(tensor.data_type) if tensor.data_type in known else "unknown"
        )
        refuse(
            f"has the type {tensor.data_type} ({said})",
            "float32, float64, int32, int64 and bool are read",
        )
    kind = numpy.dtype(TYPES[tensor.data_type])
    shape = tuple(tensor.dims)
    if len(shape) > 16 or any(extent < 0 for extent in shape):
        refuse(f"has the shape {text(shape)}", "the file is damaged")
    if tensor.raw_data:
        if len(tensor.raw_data) != math.prod(shape) * kind.itemsize:
            refuse(f"of {text(shape)} has {len(tensor.raw_data)} bytes", "the file is damaged")
        values = numpy.frombuffer(tensor.raw_data, kind)
    else:
        fields = (
            (tensor.float_data, tensor.double_data)
            if kind.kind == "f"
            else (tensor.int32_data, tensor.int64_data)
        )
        values = numpy.array(max(fields, key=len), kind)
        if len(values) != math.prod(shape):
            refuse(f"of {text(shape)} has {len(values)} numbers", "the file is damaged")
    return Constant(
        tensor.name, values.reshape(shape).astype("<f4" if kind.kind == "f" else "<i8", copy=False)
    )


def _take_external(tensor, file, origin, read):
    """Puts the numbers of a tensor that lie in another file into it. `read` has the files by their names."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    name = entries.get("location", "")
    if not name.isprintable() or name in ("", "..") or pathlib.PurePath(name).name != name:
        raise AntichainError(
            f"{origin}: the numbers of '{tensor.name[:256]}' lie in {name[:256]!r}: external data are read "
            "from files in the same folder only"
        )
    if name not in read:
        beside = file.parent / name
        if beside.is_symlink() or not beside.is_file() or beside.stat().st_size > MOST_EXTERNAL_BYTES:
            raise AntichainError(
                f"{origin}: the numbers of '{tensor.name[:256]}' lie in {name}, which is no file of at "
                f"most 8 "
                "GiB beside it: external data are read from files in the same folder, and not from a link"
            )
        read[name] = beside.read_bytes()
    data = read[name]
    places = [entries.get("offset", "0"), entries.get("length", "")]
    if not all(place.isascii() and place.isdigit() for place in places if place != ""):
        raise AntichainError(
            f"{origin}: external data lie at {places}: a number of bytes is expected there"
        )
    begin = int(places[0] or 0)
    length = int(places[1]) if places[1] else max(0, len(data) - begin)
    if begin + length > len(data):
        raise AntichainError(
            f"{origin}: the numbers of '{tensor.name[:256]}' lie at bytes {begin} to {begin + length} of "
            f"{name}, which has {len(data)}: {DAMAGED}"
        )
    tensor.raw_data = data[begin : begin + length]


def _node(proto):
    def value(a):
        if a.type not in FIELDS:
            return None  # a graph, or what a file of another version has
        found = getattr(a, FIELDS[a.type])
        return found.decode(errors="replace") if a.type == 3 else found

    domain = "" if proto.domain in ("", "ai.onnx") else f"{proto.domain}."
    attributes = {a.name: value(a) for a in proto.attribute}
    return Node(proto.name, domain + proto.op_type, list(proto.input), list(proto.output), attributes)


@dataclasses.dataclass
class File:
    """A file's messages."""

    origin: str  # what errors call it
    model: object  # onnx.ModelProto
    opset: int
    nodes: list
    constants: dict  # the initializers' messages, by their names
    bytes: int


def opset_of(model, origin):
    for opset in model.opset_import:
        if opset.domain in ("", "ai.onnx"):
            if not OLDEST_OPSET <= opset.version <= NEWEST_OPSET:
                raise AntichainError(
                    f"{origin} is of opset {opset.version}: export it with an opset of {OLDEST_OPSET} to "
                    f"{NEWEST_OPSET}"
                )
            return opset.version
    raise AntichainError(f"{origin} does not say its opset: the file is damaged")


def read_file(path):
    """Returns the File of a path. Throws AntichainError."""
    file, origin = pathlib.Path(path), str(path)
    try:
        if file.stat().st_size > MOST_BYTES:
            raise AntichainError(f"{origin} has more than 2 GiB: larger networks have external data")
        data = file.read_bytes()
    except OSError as problem:
        raise AntichainError(f"can't read {origin}: {problem.strerror}") from problem
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except Exception as problem:  # protobuf's DecodeError, whose package depends on its version
        raise AntichainError(f"{origin} is no ONNX file: {problem}: {DAMAGED}") from problem
    if not model.HasField("graph") or not model.opset_import:
        missing = "opset" if model.HasField("graph") else "graph"
        raise AntichainError(f"{origin} is no ONNX file: it has no {missing}: {DAMAGED}")
    graph = model.graph
    if graph.sparse_initializer:
        raise AntichainError(f"{origin}: it has sparse initializers: write them as dense ones")
    opset = opset_of(model, origin)
    if not graph.output:
        raise AntichainError(f"{origin} has no output: a network's first output is N x classes")
    most = max((len(node.input) for node in graph.node), default=0)
    if len(graph.node) > MOST_NODES or most > MOST_INPUTS:
        raise AntichainError(
            f"{origin} has {len(graph.node)} nodes of up to {most} inputs: {MOST_NODES} nodes of "
            f"{MOST_INPUTS} "
            "inputs are the most"
        )
    read, constants = {}, {}
    for tensor in graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            _take_external(tensor, file, origin, read)
        if tensor.name in constants:
            raise AntichainError(
                f"{origin}: two initializers have the name '{tensor.name[:256]}': the file is damaged"
            )
        constants[tensor.name] = tensor
    nodes = [_node(node) for node in graph.node]
    given = {value.name for value in graph.input}
    for node in nodes:
        for name in filter(None, node.outputs):
            if name in given:
                raise AntichainError(
                    f"{origin}: two nodes or inputs give '{name[:256]}': the file is damaged"
                )
            given.add(name)
    size = len(data) + sum(map(len, read.values()))
    return File(origin, model, opset, nodes, constants, size)
