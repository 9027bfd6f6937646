"""Reads an ONNX file, and refuses in one sentence what is damaged or can't be a network."""

import dataclasses
import pathlib

import onnx
from onnx import helper, numpy_helper

from antichain.error import AntichainError
from antichain.graph_operators import text
from antichain.onnx.names import NEWEST_OPSET, OLDEST_OPSET
from antichain.translation import Unsupported

MOST_BYTES, MOST_EXTERNAL_BYTES = 2 << 30, 8 << 30
MOST_NODES, MOST_INPUTS = 200_000, 65_536  # as graph.json
MOST_INTEGERS = 1 << 16  # of a constant that is computed with
TYPES = (1, 6, 7, 9, 11)  # float32, int32, int64, bool and float64, of tensors that are read
DAMAGED = "the file is truncated or damaged"


@dataclasses.dataclass
class Node:
    name: str
    op: str
    inputs: list  # "" stands for one that is left out
    outputs: list
    attributes: dict = dataclasses.field(default_factory=dict)

    @property
    def called(self):
        return (self.name or next(iter(self.outputs), ""))[:256]


@dataclasses.dataclass(frozen=True)
class Constant:
    """A constant: float32, or int64."""

    name: str
    array: object

    def __str__(self):
        return "a constant"

    @property
    def is_float(self):
        return self.array.dtype.kind == "f"

    @property
    def number(self):
        """The one number that it has, or None where it has several."""
        return self.array.item() if self.array.size == 1 else None

    @property
    def integers(self):
        if self.is_float or self.array.size > MOST_INTEGERS:
            raise Unsupported(f"the tensor '{self.name[:256]}' where a few integers are expected")
        return self.array.ravel().tolist()


def numbers_of(tensor, origin):
    """Returns a tensor of the file as a Constant."""

    def refuse(why, hint="the file is damaged"):
        raise AntichainError(f"{origin}: the tensor '{tensor.name[:256]}' {why}: {hint}")

    kind = tensor.data_type
    if kind not in TYPES:
        types = onnx.TensorProto.DataType
        name = types.Name(kind) if kind in types.values() else "unknown"
        refuse(f"has the type {kind} ({name})", "float32, float64, int32, int64 and bool are read")
    try:
        array = numpy_helper.to_array(tensor)
    except (TypeError, ValueError):
        array = None
    if array is None or array.shape != tuple(tensor.dims):  # -1 is no extent
        has = f"{len(tensor.raw_data)} bytes" if tensor.raw_data else "another number of numbers"
        refuse(f"of {text(tensor.dims)} has {has}")
    return Constant(tensor.name, array.astype("<f4" if array.dtype.kind == "f" else "<i8", copy=False))


def _take_external(tensor, file, origin, read):
    """Puts the numbers of a tensor that lie in another file into it. `read` has the files by their names."""

    def refuse(where, why):
        raise AntichainError(f"{origin}: the numbers of '{tensor.name[:256]}' lie {where}: {why}")

    entries = {entry.key: entry.value for entry in tensor.external_data}
    name = entries.get("location", "")
    allowed = "external data are read from files in the same folder, and not from a link"
    if not name.isprintable() or name in ("", "..") or pathlib.PurePath(name).name != name:
        refuse(f"in {name[:256]!r}", allowed)
    if name not in read:
        beside = file.parent / name
        if beside.is_symlink() or not beside.is_file() or beside.stat().st_size > MOST_EXTERNAL_BYTES:
            refuse(f"in {name}, which is no file of at most 8 GiB beside it", allowed)
        read[name] = beside.read_bytes()
    places = [entries.get("offset") or "0", entries.get("length") or ""]
    if not all(place.isascii() and place.isdigit() for place in places if place):
        refuse(f"at {places}", "a number of bytes is expected there")
    begin, size = int(places[0]), len(read[name])
    end = begin + int(places[1]) if places[1] else max(begin, size)
    if end > size:
        refuse(f"at bytes {begin} to {end} of {name}, which has {size}", DAMAGED)
    tensor.raw_data = read[name][begin:end]
    tensor.data_location = onnx.TensorProto.DEFAULT


def _node(proto):
    def value(attribute):
        found = helper.get_attribute_value(attribute)
        return found.decode(errors="replace") if isinstance(found, bytes) else found

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


def _checked(model, origin):
    """Returns the opset. Throws AntichainError for what is no network of an opset that is read."""
    graph = model.graph
    opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)
    allowed = f"{OLDEST_OPSET} to {NEWEST_OPSET}"
    nodes, inputs = len(graph.node), max((len(node.input) for node in graph.node), default=0)
    most = f"{MOST_NODES} nodes of {MOST_INPUTS} inputs are the most"
    for wrong, why in (
        (not model.HasField("graph"), f" is no ONNX file: it has no graph: {DAMAGED}"),
        (graph.sparse_initializer, ": it has sparse initializers: write them as dense ones"),
        (not opset, f" is no ONNX file: it has no opset: {DAMAGED}"),
        (not OLDEST_OPSET <= opset <= NEWEST_OPSET, f" is of opset {opset}: export it with one of {allowed}"),
        (not graph.output, " has no output: a network's first output is N x classes"),
        (nodes > MOST_NODES or inputs > MOST_INPUTS, f" has {nodes} nodes of up to {inputs} inputs: {most}"),
    ):
        if wrong:
            raise AntichainError(f"{origin}{why}")
    return opset


def read_file(path):
    """Returns the File of a path. Throws AntichainError."""
    file, origin, model = pathlib.Path(path), str(path), onnx.ModelProto()
    try:
        too_large = file.stat().st_size > MOST_BYTES
        data = b"" if too_large else file.read_bytes()
        model.ParseFromString(data)
    except OSError as problem:
        raise AntichainError(f"can't read {origin}: {problem.strerror}") from problem
    except Exception as problem:  # protobuf's DecodeError, whose package depends on its version
        raise AntichainError(f"{origin} is no ONNX file: {problem}: {DAMAGED}") from problem
    if too_large:
        raise AntichainError(f"{origin} has more than 2 GiB: larger networks have external data")
    opset, read, constants, given = _checked(model, origin), {}, {}, set()

    def enter(name, what):
        if name in given:
            raise AntichainError(f"{origin}: two {what} '{name[:256]}': the file is damaged")
        given.add(name)

    for tensor in model.graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            _take_external(tensor, file, origin, read)
        enter(tensor.name, "initializers have the name")
        constants[tensor.name] = tensor
    nodes = [_node(node) for node in model.graph.node]
    given = {value.name for value in model.graph.input}
    for name in (name for node in nodes for name in node.outputs if name):
        enter(name, "nodes or inputs give")
    return File(origin, model, opset, nodes, constants, len(data) + sum(map(len, read.values())))
