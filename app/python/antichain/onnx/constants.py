"""The constants of an ONNX file are its initializers, and what follows from them without the network's input:
exporters compute shapes so, and transpose weights."""

import math

import numpy

from antichain.error import AntichainError
from antichain.onnx.messages import Constant, numbers_of
from antichain.translation import Unsupported

MOST_INTEGERS = 1 << 16  # of a constant that is computed with


def _axes(node, x):
    """Returns the axes that a node has as an attribute, or since opset 13 as its second input."""
    return [int(a) for a in x[1].array] if len(x) > 1 else node.attributes.get("axes")


def _small(*arrays):
    if any(a.size > MOST_INTEGERS for a in arrays):
        raise ValueError("too many numbers")


def _squeeze(node, x):
    axes = _axes(node, x)
    return numpy.squeeze(x[0].array, None if axes is None else tuple(axes))


def _unsqueeze(node, x):
    return numpy.expand_dims(x[0].array, tuple(_axes(node, x)))


def _reshape(node, x):
    shape = [x[0].array.shape[i] if extent == 0 else int(extent) for i, extent in enumerate(x[1].array)]
    return x[0].array.reshape(shape)


def _cast(node, x):
    to = {1: "<f4", 11: "<f4", 6: "<i8", 7: "<i8", 9: "?"}[node.get("to", 1)]
    return x[0].array.astype(to)


def _gather(node, x):
    _small(*(c.array for c in x))
    return numpy.take(x[0].array, x[1].array, node.get("axis", 0))


def _concat(node, x):
    _small(*(c.array for c in x))
    return numpy.concatenate([c.array for c in x], node.get("axis", 0))


def _slice(node, x):
    _small(x[0].array)
    begins, ends, *more = ([int(i) for i in c.array] for c in x[1:])
    axes = more[0] if more else range(len(begins))
    steps = more[1] if len(more) > 1 else [1] * len(begins)
    at = [slice(None)] * x[0].array.ndim
    for axis, begin, end, step in zip(axes, begins, ends, steps):
        # An end below all places means the beginning, where steps go backwards.
        at[axis] = slice(begin, None if step < 0 and end < -x[0].array.shape[axis] else end, step)
    return x[0].array[tuple(at)]


def _shape_of(constant):
    shape = [int(i) for i in constant.array]
    if math.prod(shape) > MOST_INTEGERS:
        raise ValueError("too many numbers")
    return shape


def _expand(node, x):
    return x[0].array * numpy.ones(_shape_of(x[1]), x[0].array.dtype)


def _filled(node, x):
    shape = _shape_of(x[0])
    fill = (
        numbers_of(node.attributes["value"], "").array
        if "value" in node.attributes
        else numpy.float32([0])
    )
    return numpy.full(shape, fill.item(), fill.dtype)


def _shape(node, x):
    return numpy.int64(x[0].array.shape[node.get("start", 0) : node.attributes.get("end")])


def _arithmetic(of):
    def compute(node, x):
        a, b = (c.array for c in x)
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


def _of_first(of):
    return lambda node, x: of(x[0].array)


# Returns what a node computes from the constants x, as an array; or throws where that is not computed here.
FOLDS = {
    "Add": _arithmetic(numpy.add),
    "Cast": _cast,
    "Ceil": _of_first(numpy.ceil),
    "Concat": _concat,
    "ConstantOfShape": _filled,
    "Div": _arithmetic(_quotient),
    "Expand": _expand,
    "Floor": _of_first(numpy.floor),
    "Gather": _gather,
    "Identity": _of_first(numpy.asarray),
    "Mul": _arithmetic(numpy.multiply),
    "Reshape": _reshape,
    "Shape": _shape,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Sub": _arithmetic(numpy.subtract),
    "Transpose": lambda node, x: x[0].array.transpose(node.attributes.get("perm")),
    "Unsqueeze": _unsqueeze,
}
MOVES = (
    "Cast",
    "Identity",
    "Reshape",
    "Squeeze",
    "Transpose",
    "Unsqueeze",
)  # whose result keeps its name


class Constants:
    def __init__(self, file):
        self.file = file
        self.made = {}
        self.left = file.bytes + (4 << 20)

    def __contains__(self, name):
        return name in self.made or name in self.file.constants

    def find(self, name):
        """Returns the constant, or None where there is none. Throws AntichainError when it can't be read."""
        if name not in self.made:
            if name not in self.file.constants:
                return None
            self.made[name] = numbers_of(self.file.constants[name], self.file.origin)
        return self.made[name]

    def add(self, name, constant):
        self.made[name] = constant

    def take(self, numbers):
        """Counts numbers that are computed from the file's."""
        self.left -= numbers
        if self.left < 0:
            raise AntichainError(
                f"{self.file.origin}: its constants and weights grow to more numbers than the file has "
                f"bytes: "
                "no exporter writes such a network"
            )

    def fold(self, node):
        """Returns the output of a node that computes with constants only, or None where it is no such
        node."""
        if len(node.outputs) != 1:
            return None
        if node.op == "Constant":
            return self._value(node)
        if node.op not in FOLDS or not node.inputs or not all(name in self for name in node.inputs):
            return None
        x = [self.find(name) for name in node.inputs]
        try:
            with numpy.errstate(divide="raise", invalid="raise", over="ignore"):
                array = numpy.asarray(FOLDS[node.op](node, x))
        except (ArithmeticError, LookupError, TypeError, Unsupported, ValueError):
            return None
        self.take(array.size)
        kind = "<f4" if array.dtype.kind == "f" else "<i8"
        return Constant(x[0].name if node.op in MOVES else "", array.astype(kind, copy=False))

    def _value(self, node):
        """Returns the value of a node "Constant", or None where it has none that is read."""
        if node.attributes.get("value") is not None:
            return numbers_of(node.attributes["value"], self.file.origin)
        for name, kind in (
            ("value_float", "<f4"),
            ("value_floats", "<f4"),
            ("value_int", "<i8"),
            ("value_ints", "<i8"),
        ):
            if node.attributes.get(name) is not None:
                return Constant("", numpy.array(node.attributes[name], kind))
        return None

    def integers(self, name):
        """Returns the integers of a constant. Throws AntichainError where it has fractions or too many."""
        found = self.find(name)
        if found.is_float or found.array.size > MOST_INTEGERS:
            raise Unsupported(f"the tensor '{found.name[:256]}' where a few integers are expected")
        return [int(i) for i in found.array.ravel()]
