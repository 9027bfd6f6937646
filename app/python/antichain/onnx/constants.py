"""The constants of an ONNX file are its initializers, and what follows from them without the network's input:
exporters compute shapes so, and transpose weights."""

import math

import numpy

from antichain.error import AntichainError
from antichain.onnx.messages import MOST_INTEGERS, Constant, numbers_of
from antichain.translation import WRONG

KINDS = {1: "<f4", 11: "<f4", 6: "<i8", 7: "<i8", 9: "?"}  # what a Cast to a type of ONNX gives
VALUES = {"value_float": "<f4", "value_floats": "<f4", "value_int": "<i8", "value_ints": "<i8"}


def _reshape(x, shape, allowzero=0):
    return x.reshape([x.shape[i] if extent == 0 else extent for i, extent in enumerate(shape.tolist())])


def _slice(x, begins, ends, axes=None, steps=None):
    at = [slice(None)] * x.ndim
    axes = range(len(begins)) if axes is None else axes.tolist()
    steps = [1] * len(begins) if steps is None else steps.tolist()
    for axis, begin, end, step in zip(axes, begins.tolist(), ends.tolist(), steps):
        # An end below all places means the beginning, where steps go backwards.
        at[axis] = slice(begin, None if step < 0 and end < -x.shape[axis] else end, step)
    return x[tuple(at)]


def _filled(shape, value=None):
    if math.prod(shape.tolist()) > MOST_INTEGERS:
        raise ValueError("too many numbers")
    fill = numpy.float32([0]) if value is None else numbers_of(value, "").array
    return numpy.full(shape, fill.item(), fill.dtype)


def _arithmetic(of):
    def compute(a, b):
        if a.dtype != b.dtype or (a.size != 1 and b.size != 1 and a.shape != b.shape):
            raise ValueError("other types or shapes")
        return of(a, b)

    return compute


def _quotient(a, b):
    if a.dtype.kind == "f":
        return a / b
    if (b <= 0).any():
        raise ValueError("no quotient of whole numbers that is rounded alike everywhere")
    return a // b


# Returns what a node computes from arrays and attributes, as an array; or throws where that is not computed
# here. Axes are an attribute before opset 13, and an input since.
FOLDS = {
    "Add": _arithmetic(numpy.add),
    "Cast": lambda x, to, **_: x.astype(KINDS[to]),
    "Ceil": numpy.ceil,
    "Concat": lambda *x, axis: numpy.concatenate(x, axis),
    "ConstantOfShape": _filled,
    "Div": _arithmetic(_quotient),
    "Expand": lambda x, shape: numpy.broadcast_to(x, numpy.broadcast_shapes(x.shape, tuple(shape))),
    "Floor": numpy.floor,
    "Gather": lambda x, places, axis=0: numpy.take(x, places, axis),
    "Identity": lambda x: x,
    "Mul": _arithmetic(numpy.multiply),
    "Reshape": _reshape,
    "Shape": lambda x, start=0, end=None: numpy.int64(x.shape[start:end]),
    "Slice": _slice,
    "Squeeze": lambda x, axes=None: numpy.squeeze(x, None if axes is None else tuple(axes)),
    "Sub": _arithmetic(numpy.subtract),
    "Transpose": lambda x, perm=None: x.transpose(perm),
    "Unsqueeze": lambda x, axes: numpy.expand_dims(x, tuple(axes)),
}
MOVES = ("Cast", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")  # whose result keeps its name


class Constants:
    def __init__(self, file):
        self.file = file
        self.made = {}
        self.left = file.bytes + (4 << 20)

    def __contains__(self, name):
        return name in self.made or name in self.file.constants

    def find(self, name):
        """Returns the constant, or None where there is none. Throws AntichainError when it can't be read."""
        if name not in self.made and name in self.file.constants:
            self.made[name] = numbers_of(self.file.constants[name], self.file.origin)
        return self.made.get(name)

    def add(self, name, constant):
        self.made[name] = constant

    def take(self, numbers):
        """Counts numbers that are computed from the file's."""
        self.left -= numbers
        if self.left < 0:
            raise AntichainError(
                f"{self.file.origin}: its constants and weights grow to more numbers than the file has "
                "bytes: no exporter writes such a network"
            )

    def fold(self, node):
        """Returns the output of a node that computes with constants only, or None for another node."""
        if node.op == "Constant" and len(node.outputs) == 1:
            return self._value(node.attributes)
        folds = node.op in FOLDS and len(node.outputs) == 1 and all(name in self for name in node.inputs)
        x = [self.find(name) for name in node.inputs] if folds else ()
        if not x or (node.op not in (*MOVES, "Shape") and any(c.array.size > MOST_INTEGERS for c in x)):
            return None
        try:
            with numpy.errstate(divide="raise", invalid="raise", over="ignore"):
                array = numpy.asarray(FOLDS[node.op](*(c.array for c in x), **node.attributes))
        except WRONG:
            return None
        self.take(array.size)
        kind = "<f4" if array.dtype.kind == "f" else "<i8"
        return Constant(x[0].name if node.op in MOVES else "", array.astype(kind, copy=False))

    def _value(self, attributes):
        """Returns the value of a node "Constant", or None where it has none that is read."""
        if attributes.get("value") is not None:
            return numbers_of(attributes["value"], self.file.origin)
        values = (Constant("", numpy.array(attributes[n], k)) for n, k in VALUES.items() if n in attributes)
        return next(values, None)
