"""The constants of an ONNX file are its initializers, and what follows from them without the network's input:
exporters compute shapes so, and transpose weights."""

import math

import numpy

from antichain.error import AntichainError
from antichain.onnx.messages import Constant, numbers_of
from antichain.translation import Unsupported

MOST_INTEGERS = 1 << 16  # of a constant that is computed with
KINDS = {1: "<f4", 11: "<f4", 6: "<i8", 7: "<i8", 9: "?"}  # what a Cast to a type of ONNX gives
VALUES = {"value_float": "<f4", "value_floats": "<f4", "value_int": "<i8", "value_ints": "<i8"}


def _small(*arrays):
    """Returns the arrays, which have few numbers."""
    if any(a.size > MOST_INTEGERS for a in arrays):
        raise ValueError("too many numbers")
    return arrays


def _axes(node, axes):
    """Returns the axes that a node has as its second input, or before opset 13 as an attribute."""
    return node.attributes.get("axes") if axes is None else axes.tolist()


def _squeeze(node, x, axes=None):
    axes = _axes(node, axes)
    return numpy.squeeze(x, None if axes is None else tuple(axes))


def _reshape(node, x, shape):
    return x.reshape([x.shape[i] if extent == 0 else extent for i, extent in enumerate(shape.tolist())])


def _slice(node, x, begins, ends, axes=None, steps=None):
    _small(x)
    at = [slice(None)] * x.ndim
    axes = range(len(begins)) if axes is None else axes.tolist()
    steps = [1] * len(begins) if steps is None else steps.tolist()
    for axis, begin, end, step in zip(axes, begins.tolist(), ends.tolist(), steps):
        # An end below all places means the beginning, where steps go backwards.
        at[axis] = slice(begin, None if step < 0 and end < -x.shape[axis] else end, step)
    return x[tuple(at)]


def _shape_of(extents):
    shape = extents.tolist()
    if math.prod(shape) > MOST_INTEGERS:
        raise ValueError("too many numbers")
    return shape


def _filled(node, extents):
    shape, value = _shape_of(extents), node.attributes.get("value")
    fill = numpy.float32([0]) if value is None else numbers_of(value, "").array
    return numpy.full(shape, fill.item(), fill.dtype)


def _arithmetic(of):
    def compute(node, a, b):
        _small(a, b)
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


# Returns what a node computes from arrays, as an array; or throws where that is not computed here.
FOLDS = {
    "Add": _arithmetic(numpy.add),
    "Cast": lambda node, x: x.astype(KINDS[node.get("to", 1)]),
    "Ceil": lambda node, x: numpy.ceil(x),
    "Concat": lambda node, *x: numpy.concatenate(_small(*x), node.get("axis", 0)),
    "ConstantOfShape": _filled,
    "Div": _arithmetic(_quotient),
    "Expand": lambda node, x, shape: x * numpy.ones(_shape_of(shape), x.dtype),
    "Floor": lambda node, x: numpy.floor(x),
    "Gather": lambda node, *x: numpy.take(*_small(*x), node.get("axis", 0)),
    "Identity": lambda node, x: x,
    "Mul": _arithmetic(numpy.multiply),
    "Reshape": _reshape,
    "Shape": lambda node, x: numpy.int64(x.shape[node.get("start", 0) : node.attributes.get("end")]),
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Sub": _arithmetic(numpy.subtract),
    "Transpose": lambda node, x: x.transpose(node.attributes.get("perm")),
    "Unsqueeze": lambda node, x, axes=None: numpy.expand_dims(x, tuple(_axes(node, axes))),
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
        if len(node.outputs) != 1:
            return None
        if node.op == "Constant":
            return self._value(node)
        if node.op not in FOLDS or not node.inputs or not all(name in self for name in node.inputs):
            return None
        x = [self.find(name) for name in node.inputs]
        try:
            with numpy.errstate(divide="raise", invalid="raise", over="ignore"):
                array = numpy.asarray(FOLDS[node.op](node, *(c.array for c in x)))
        except (ArithmeticError, LookupError, TypeError, Unsupported, ValueError):
            return None
        self.take(array.size)
        kind = "<f4" if array.dtype.kind == "f" else "<i8"
        return Constant(x[0].name if node.op in MOVES else "", array.astype(kind, copy=False))

    def _value(self, node):
        """Returns the value of a node "Constant", or None where it has none that is read."""
        if node.attributes.get("value") is not None:
            return numbers_of(node.attributes["value"], self.file.origin)
        for name, kind in VALUES.items():
            if node.attributes.get(name) is not None:
                return Constant("", numpy.array(node.attributes[name], kind))
        return None

    def integers(self, name):
        """Returns the integers of a constant. Throws Unsupported where it has fractions or too many."""
        found = self.find(name)
        if found.is_float or found.array.size > MOST_INTEGERS:
            raise Unsupported(f"the tensor '{found.name[:256]}' where a few integers are expected")
        return found.array.ravel().tolist()
