"""Brings the nodes of an ONNX file into a form in which each is one operator: constants are computed, and
what exporters decompose (a LayerNorm, a GELU, …) becomes the operator that later opsets have for it.

Four operators have a meaning of their own afterwards: MatMul may have a third input, which is added;
LayerNormalization has the attribute `axes`; GroupNormalization that was recognised has `per_channel` = 1; and
AveragePool that was recognised is an adaptive pool, with the attributes `input_size` and `output_size`.

An adaptive pool averages over windows, and ONNX has no operator for it. Where its windows have different
sizes it is written as two products, y = MatMul(R, MatMul(x, C)), which average over the columns of each
window and then over its rows.
"""

import collections

import numpy

from antichain.graph_operators import needed
from antichain.onnx.names import FORMS, HARDSIGMOID
from antichain.onnx.patterns import Match, Matcher, pattern_of
from antichain.translation import Unsupported


def window_means(extent, out):
    """Returns the matrix R of one side, out x extent: 1 / (size of window i) in row i where a pixel is in
    that window, from ⌊i · extent / out⌋ to before ⌈(i + 1) · extent / out⌉, and 0 elsewhere. C is such a
    matrix, transposed."""
    means = numpy.zeros((out, extent), "<f4")
    for i in range(out):
        begin, end = i * extent // out, -(-(i + 1) * extent // out)
        means[i, begin:end] = numpy.float32(1) / numpy.float32(end - begin)
    return means


def _mean_axes(mean, constants):
    """Returns the axes of a ReduceMean, which are an attribute or an input."""
    axes = constants.find(mean.inputs[1]) if len(mean.inputs) > 1 else None
    return axes.integers if axes else list(mean.attributes.get("axes", ()))


# Functions of a match and the constants that return a node's attributes, or None where the pattern means
# something else.
def _layer_norm(m, constants):
    means = m.all("ReduceMean")
    axes, eps = _mean_axes(means[0], constants), constants.find(m.letters["E"]).number
    kept = all(mean.attributes.get("keepdims", 1) == 1 for mean in means)
    fits = axes and eps is not None and _mean_axes(means[1], constants) == axes and kept
    return {"axes": axes, "epsilon": eps} if fits else None


def _group_norm(m, constants):
    shape = constants.find(m.letters["S"]).integers
    ones, zeros = (constants.find(m.letters[letter]).array for letter in "OZ")
    if len(shape) != 3 or shape[0] != 0 or shape[2] != -1 or (ones != 1).any() or (zeros != 0).any():
        return None
    eps = m.all("InstanceNormalization")[0].attributes.get("epsilon", 1e-5)
    return {"num_groups": shape[1], "per_channel": 1, "epsilon": eps}


def _adaptive_pool(m, constants):
    rows, columns = (constants.find(m.letters[letter]).array for letter in "RC")
    for means in (rows, columns.T):
        if means.ndim != 2 or not means.size or (means != window_means(*means.shape[::-1])).any():
            return None
    return {"input_size": [rows.shape[1], len(columns)], "output_size": [len(rows), columns.shape[1]]}


def _extends(op):
    """The node keeps the attributes of the one that it extends."""

    def settle(m, constants):
        attributes = m.all(op)[0].attributes
        shape = constants.find(m.letters.get("B", m.letters["W"])).array.shape
        axes = list(attributes.get("axes", ()))
        if op == "MatMul":
            fits = len(shape) == 1
        elif axes == [1] or op == "GroupNormalization":  # a factor of every channel
            fits = sum(extent == 1 for extent in shape) >= len(shape) - 1
        else:  # the weight of a LayerNorm over the last axes has their shape
            fits = len(shape) == len(axes)
        return attributes if fits else None

    return settle


def _neutral(number):
    return lambda m, constants: {} if constants.find(m.letters["C"]).number == number else None


def _always(**attributes):
    return lambda m, constants: attributes


def is_hardsigmoid(alpha=0.2, beta=0.5):
    return abs(alpha - HARDSIGMOID["alpha"]) <= 1e-4 and beta == HARDSIGMOID["beta"]


def _of_hardsigmoid(m, constants):
    return {} if is_hardsigmoid(**m.all("HardSigmoid")[0].attributes) else None


def _scaled(op, norm, settle):
    """Returns the rules for a norm, and for the factors and terms that follow it."""
    factors = (f"Mul({op}(x), W)", op, "xW", _extends(op))
    return [(norm, op, "x", settle), factors, (f"Add({op}(x, W), B)", op, "xWB", _extends(op))]


_VARIANCE = "Div(d=Sub(x, ReduceMean(x)), Sqrt(Add(ReduceMean({}), E)))"
_GROUPS = "Reshape(InstanceNormalization(Reshape(x, S), O, Z), {})"
# What a pattern becomes: an operator, the letters that are its inputs, and its attributes.
RULES = [
    ("Mul(x, C)", "Identity", "x", _neutral(1)),
    ("Div(x, C)", "Identity", "x", _neutral(1)),
    ("Add(x, C)", "Identity", "x", _neutral(0)),
    ("Sub(x, C)", "Identity", "x", _neutral(0)),
    (FORMS["gelu"], "Gelu", "x", _always()),
    ("Mul(0.5, x, Add(1, Erf(Mul(x, 0.70710678))))", "Gelu", "x", _always()),
    (FORMS["gelu_tanh"], "Gelu", "x", _always(approximate="tanh")),
    (FORMS["gelu_tanh"].replace("Pow(x, 3)", "x, x, x"), "Gelu", "x", _always(approximate="tanh")),
    ("Div(Clip(Add(x, 3), 0, 6), 6)", "HardSigmoid", "x", _always(**HARDSIGMOID)),
    ("Mul(Clip(Add(x, 3), 0, 6), 0.16666667)", "HardSigmoid", "x", _always(**HARDSIGMOID)),
    ("Div(Mul(x, Clip(Add(x, 3), 0, 6)), 6)", "HardSwish", "x", _always()),
    ("Mul(x, HardSigmoid(x))", "HardSwish", "x", _of_hardsigmoid),
    (FORMS["silu"], "Swish", "x", _always()),
    (_VARIANCE.format("Mul(d, d)"), "LayerNormalization", "x", _layer_norm),
    *_scaled("LayerNormalization", _VARIANCE.format("Pow(d, 2)"), _layer_norm),
    (_GROUPS.format("t"), "GroupNormalization", "x", _group_norm),
    *_scaled("GroupNormalization", _GROUPS.format("T"), _group_norm),
    ("MatMul(R, MatMul(x, C))", "AveragePool", "x", _adaptive_pool),
    ("Add(MatMul(x, W), B)", "MatMul", "xWB", _extends("MatMul")),
]
BY_OP = collections.defaultdict(list)
for _pattern, *_rule in RULES:
    BY_OP[pattern_of(_pattern).op].append((pattern_of(_pattern), *_rule))


def _recognise(node, matcher, constants):
    for pattern, op, letters, settle in BY_OP.get(node.op, ()):
        match = Match()
        if matcher.node(pattern, node, match):
            try:
                attributes = settle(match, constants)
            except Unsupported:  # which the node's row will say, too
                continue
            if attributes is not None:
                node.op, node.attributes = op, dict(attributes)
                node.inputs = [match.letters[letter] for letter in letters]
                return


def simplify(nodes, outputs, constants):
    """Returns the nodes that the outputs need, each one operator, and the outputs' names. Constants that
    nodes give are entered."""
    same, makers = {}, {}  # outputs of Identity, and the nodes that make the others
    matcher = Matcher(makers, constants)
    for node in nodes:
        node.inputs = [same.get(name, name) for name in node.inputs]
        value = constants.fold(node)
        if value is not None:
            constants.add(node.outputs[0], value)
            continue
        _recognise(node, matcher, constants)
        if node.op == "Identity" and len(node.inputs) == len(node.outputs) == 1:
            same[node.outputs[0]] = node.inputs[0]
        else:
            makers.update((output, node) for output in node.outputs)
    outputs = [same.get(name, name) for name in outputs]

    def gives(node):
        return [name for name in node.outputs if name and makers.get(name) is node]

    return needed(nodes, outputs, gives, lambda node: node.inputs), outputs
