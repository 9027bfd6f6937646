"""Makes an ONNX file of a folder NAME.antichain: the network's logits in evaluation, from images of any
number of samples, with initializers that have the names of the weights. The table says which of ONNX's
operators our operators become, with one row an operator."""

import json
import pathlib

import numpy
import onnx
from onnx import helper, numpy_helper

from antichain import safetensors
from antichain.error import AntichainError
from antichain.files import write_whole
from antichain.folder import GRAPH, WEIGHTS
from antichain.graph_operators import (
    DEFAULTS,
    PAIRS,
    WHOLE,
    four,
    needed,
    output_shape,
    pair,
    parts_of,
    row_of,
)
from antichain.onnx.messages import MOST_BYTES
from antichain.onnx import names
from antichain.onnx.names import FORMS
from antichain.onnx.patterns import pattern_of
from antichain.onnx.simplify import window_means

IR_VERSION = 8  # that of opset 17
SAMPLES = 2  # of the shapes; a file leaves them open
FROM_ALIKE = {(op, options.get("function")): name for name, (op, options) in names.ALIKE.items()}


class Writing:
    """The ONNX graph that is being made, and the node of ours whose operators are being added."""

    def __init__(self, graph, weights):
        self.weights = weights
        own = {entry["is"]: entry["name"] for entry in graph.get("state_dict", ()) if "is" in entry}
        self.file_name = lambda name: own.get(name, name)
        self.shapes = {i["name"]: (SAMPLES, *i["shape"]) for i in graph["inputs"]}
        self.whole_inputs = {i["name"] for i in graph["inputs"] if i["dtype"] == "int32"}
        self.same = {}  # names of tensors that stand for a node's output
        self.nodes, self.initializers, self.written = [], [], {}
        self.node = self.options = None
        self.helpers = 0

    def begin(self, node):
        self.node, self.helpers = node, 0
        self.options = {**DEFAULTS.get(node["op"], {}), **node.get("options", {})}
        inputs = [self.shapes[name] for name in node["inputs"]]
        self.shapes[node["name"]] = output_shape(node["op"], self.options, inputs)

    @property
    def shape(self):
        return self.shapes[self.node["inputs"][0]]

    def output_of(self, name):
        """Returns what ONNX calls the output of a node. A parameter may have the node's own name."""
        return self.same.get(name, f"{name}/output" if name in self.weights else name)

    def inputs(self):
        whole = WHOLE.get(self.node["op"], ())
        return [
            self.as_numbers(name) if name in self.whole_inputs and i not in whole else self.output_of(name)
            for i, name in enumerate(self.node["inputs"])
        ]

    def as_numbers(self, name):
        """Returns what ONNX calls the whole numbers of an input as float32."""
        numbers = f"{name}/numbers"
        if all(numbers not in node.output for node in self.nodes):
            self.nodes.append(helper.make_node("Cast", [name], [numbers], numbers, to=onnx.TensorProto.FLOAT))
        return numbers

    def last(self, op, inputs=None, **attributes):
        """Adds an operator whose output is the node's."""
        name, inputs = self.node["name"], self.inputs() if inputs is None else inputs
        self.nodes.append(helper.make_node(op, inputs, [self.output_of(name)], name, **attributes))

    def helper(self, op, inputs, **attributes):
        """Adds an operator in front of that one, and returns its output."""
        name = self._next()
        self.nodes.append(helper.make_node(op, inputs, [name], name, **attributes))
        return name

    def _next(self):
        self.helpers += 1
        return f"{self.node['name']}/{self.helpers - 1}"

    def leave_out(self):
        self.same[self.node["name"]] = self.inputs()[0]

    def _initializer(self, name, array):
        if name in self.written:  # a parameter that several nodes have
            if self.written[name] == array.shape:
                return name
            name = f"{name}/{len(self.initializers)}"
        self.written[name] = array.shape
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def part(self, own, shape=None):
        """Returns the name of a parameter or buffer, which becomes an initializer."""
        full = f"{self.node['name']}.{own}" if own else self.node["name"]
        name = self.file_name(self.node.get("shared", {}).get(own, full))
        if name not in self.weights:
            raise AntichainError(f"the network's weights lack {name}: they are of another network")
        shape = shape or parts_of(self.node["op"], self.options, self.shape)[own]
        return self._initializer(name, self.weights[name].reshape(shape))

    def weight_and_bias(self, shape=None):
        return [self.part("weight", shape), *([self.part("bias")] if self.options["bias"] else [])]

    def constant(self, values, kind="<f4"):
        return self._initializer(self._next(), numpy.array(values, kind))

    def integers(self, values):
        return self.constant(values, "<i8")

    def windows(self):
        """Returns the attributes of ONNX for the options of windows that the operator has."""
        o = self.options
        own = [n for n in names.WINDOWS if n in o]
        values = {n: four(o[n]) if n == "pad" else pair(o[n]) if n in PAIRS else int(o[n]) for n in own}
        return {names.WINDOWS[name]: value for name, value in values.items()}

    def form(self, pattern, x, last=True):
        """Adds the operators of a pattern, of which x is the one tensor."""
        if pattern.number is not None:
            return self.constant(pattern.number)
        if not pattern.op:
            return x
        first, *others = pattern.inputs
        inputs = [self.form(first, x, False)]
        for i, other in enumerate(others):
            inputs.append(self.form(other, x, False))
            if pattern.op == "Mul" and i < len(others) - 1:  # a product of more than two
                inputs = [self.helper("Mul", inputs)]
        return (self.last if last else self.helper)(pattern.op, inputs)


def _activate(w):
    function = w.options["function"]
    if function in FORMS:
        w.form(pattern_of(FORMS[function]), w.inputs()[0])
    elif function == "hardsigmoid":
        w.last("HardSigmoid", **names.HARDSIGMOID)
    else:
        _no_operator(w)


def _adaptive_pool(w):
    (rows, columns), out = w.shape[2:], (w.options["h"], w.options["w"])
    if rows % out[0] or columns % out[1]:
        narrow = w.helper("MatMul", [*w.inputs(), w.constant(window_means(columns, out[1]).T)])
        return w.last("MatMul", [w.constant(window_means(rows, out[0])), narrow])
    kernel = [rows // out[0], columns // out[1]]
    return w.last("AveragePool", kernel_shape=kernel, strides=kernel)


def _batch_norm(w):
    own = [w.part("weight"), w.part("bias")] if w.options["affine"] else []
    own = own or [w.constant([number] * w.shape[1]) for number in (1, 0)]
    parts = [*own, w.part("running_mean"), w.part("running_var")]
    kept = numpy.float32(1) - numpy.float32(w.options["momentum"])
    w.last("BatchNormalization", w.inputs() + parts, epsilon=w.options["eps"], momentum=float(kept))


def _conv_transpose(w):
    o = w.options
    weight = (w.shape[1], o["out"] // o["groups"], *pair(o["kernel"]))  # also of a line
    w.last("ConvTranspose", w.inputs() + w.weight_and_bias(weight), **w.windows())


def _matmul(w):
    order = [*range(len(w.shape) - 2), len(w.shape) - 1, len(w.shape) - 2]
    turned = [w.options["transpose_a"], w.options["transpose_b"]]
    w.last("MatMul", [w.helper("Transpose", [x], perm=order) if t else x for x, t in zip(w.inputs(), turned)])


def _conv(w):
    o = w.options
    weight = (o["out"], w.shape[1] // o["groups"], *pair(o["kernel"]))  # also of a matrix or a line
    w.last("Conv", w.inputs() + w.weight_and_bias(weight), **w.windows())


def _linear(w):
    weight, *bias = w.weight_and_bias()
    in_first = w.options["in_first"]
    if len(w.shape) == 2:
        return w.last("Gemm", [*w.inputs(), weight, *bias], transB=int(not in_first))
    factors = [*w.inputs(), weight if in_first else w.helper("Transpose", [weight], perm=[1, 0])]
    if not bias:
        return w.last("MatMul", factors)
    w.last("Add", [w.helper("MatMul", factors), *bias])


def _gather(w):
    w.last("Gather", [*w.inputs(), w.integers(w.options["table"])], axis=w.options["axis"])


def _group_norm(w):
    o, shape = w.options, w.shape
    groups = w.helper("Reshape", [*w.inputs(), w.integers([0, o["groups"], -1])])
    ones, zeros = w.constant([1] * o["groups"]), w.constant([0] * o["groups"])
    y = w.helper("InstanceNormalization", [groups, ones, zeros], epsilon=o["eps"])
    back = w.integers([-1, *shape[1:]])
    if not o["affine"]:
        return w.last("Reshape", [y, back])
    factors = (shape[1], *[1] * (len(shape) - 2))
    scaled = w.helper("Mul", [w.helper("Reshape", [y, back]), w.part("weight", factors)])
    return w.last("Add", [scaled, w.part("bias", factors)])


# What ONNX has for the functions of layers/elementwise_table.inc, of the operands a, b and c.
FUNCTIONS = {
    **{f: (of, "a") for f, of in names.FUNCTIONS_OF_ONE.items()},
    **{f: (of, "a", "b") for f, of in names.FUNCTIONS_OF_TWO.items()},
    **{f: ("Cast", (of, "a", "b")) for f, of in names.COMPARISONS.items()},
    "clamp": ("Min", ("Max", "a", "b"), "c"),
    "elu": ("Where", ("Greater", "a", 0), "a", ("Mul", "b", ("Sub", ("Exp", "a"), 1))),
    "expm1": ("Sub", ("Exp", "a"), 1),
    "leaky_relu": ("Where", ("Greater", "a", 0), "a", ("Mul", "a", "b")),
    "log1p": ("Log", ("Add", "a", 1)),
    "mish": ("Mul", "a", ("Tanh", ("Softplus", "a"))),
    "not_equal": ("Cast", ("Not", ("Equal", "a", "b"))),
    "where": ("Where", ("Equal", "a", 0), "c", "b"),
}


def _elementwise(w):
    o, values = w.options, {f"x{i}": x for i, x in enumerate(w.inputs())}
    if "parameter" in o:
        behind = 0 if o["parameter_axis"] < 0 else len(w.shape) - 1 - o["parameter_axis"]
        values["p"] = w.part("", (*o["parameter"], *[1] * behind))

    def made(form, operands, make):
        """Adds the operators of a form, of which `make` adds the last one."""
        if not isinstance(form, tuple):
            return operands[form] if isinstance(form, str) else w.constant(form)
        op, *inputs = form
        attributes = {"to": onnx.TensorProto.FLOAT} if op == "Cast" else {}
        return make(op, [made(part, operands, w.helper) for part in inputs], **attributes)

    for i, step in enumerate(o["steps"]):
        name, *words = step.split()
        known = (values[word] if word in values else w.constant(float(word)) for word in words)
        last = i == len(o["steps"]) - 1
        values[f"s{i}"] = made(FUNCTIONS[name], dict(zip("abc", known)), w.last if last else w.helper)


def _interpolate(w):
    o, y = w.options, w.shapes[w.node["name"]]

    def scale(axis):
        if "scale" in o:
            return pair(o["scale"])[axis - 2]
        s = numpy.float32(y[axis]) / numpy.float32(w.shape[axis])
        while int(numpy.float32(w.shape[axis]) * s) < y[axis]:
            s = numpy.nextafter(s, numpy.float32(1e30))
        return s

    scales = w.constant([1, 1, scale(2), scale(3)])
    w.last("Resize", [*w.inputs(), "", scales], **names.RESIZES[o["mode"], o["align_corners"]])


def _layer_norm(w):
    o, (x,) = w.options, w.inputs()
    row = row_of(o, w.shape)
    if o["channels"]:
        x = w.helper("Transpose", [x], perm=[0, 2, 3, 1])
    parts = w.weight_and_bias() if o["affine"] else [w.constant(numpy.ones(row))]
    attributes = {"axis": -len(row), "epsilon": o["eps"]}
    if not o["centred"]:
        return _rms_norm(w, x, parts, row)
    if not o["channels"]:
        return w.last("LayerNormalization", [x, *parts], **attributes)
    y = w.helper("LayerNormalization", [x, *parts], **attributes)
    return w.last("Transpose", [y], perm=[0, 3, 1, 2])


def _rms_norm(w, x, parts, row):
    o, axes = w.options, list(range(-len(row), 0))
    squares = w.helper("ReduceMean", [w.helper("Mul", [x, x])], axes=axes)
    root = w.helper("Sqrt", [w.helper("Add", [squares, w.constant([o["eps"]])])])
    y = w.helper("Mul", [w.helper("Div", [x, root]), parts[0]])
    y = w.helper("Add", [y, parts[1]]) if len(parts) > 1 else y
    w.last("Transpose", [y], perm=[0, 3, 1, 2]) if o["channels"] else w.last("Identity", [y])


def _slice(w):
    o = w.options
    taken = range(*slice(o["begin"], o["end"], o["step"]).indices(w.shape[o["axis"]]))
    places = [taken[0], taken[-1] + 1, o["axis"], o["step"]]
    w.last("Slice", w.inputs() + [w.integers([place]) for place in places])


def _constant(w):
    shape, values = w.options["shape"], numpy.array(w.options["values"])
    samples = w.helper("Shape", w.inputs(), start=0, end=1)
    extents = w.helper("Concat", [samples, w.integers(shape)], axis=0)
    w.last("Expand", [w.constant(values if len(values) == 1 else values.reshape(1, *shape)), extents])


def _no_operator(w):
    raise AntichainError(
        f"node '{w.node['name']}': ONNX has no operator for our '{w.node['op']}': keep the network as "
        "NAME.antichain"
    )


ROWS = {
    "activate": _activate,
    "adaptive_average_pool": _adaptive_pool,
    "add": lambda w: w.last("Add"),
    "average_pool": lambda w: w.last("AveragePool", **w.windows()),
    "batch_norm": _batch_norm,
    "constant": _constant,
    "concat": lambda w: w.last("Concat", axis=1),
    "conv2d": _conv,
    "conv_transpose2d": _conv_transpose,
    "dropout": Writing.leave_out,
    "elementwise": _elementwise,
    "embedding": lambda w: w.last("Gather", [w.part("weight"), *w.inputs()]),
    "flatten": lambda w: w.last("Flatten", axis=1),
    "gather": _gather,
    "global_average_pool": lambda w: w.last("GlobalAveragePool"),
    "group_norm": _group_norm,
    "interpolate": _interpolate,
    "layer_norm": _layer_norm,
    "layer_scale": lambda w: w.last("Mul", [*w.inputs(), w.part("")]),
    "linear": _linear,
    "matmul": _matmul,
    "max_pool": lambda w: w.last("MaxPool", **w.windows()),
    "mean": lambda w: w.last("ReduceMean", axes=w.options["axes"], keepdims=int(w.options["keep_dims"])),
    "multiply": lambda w: w.last("Mul"),
    "permute": lambda w: w.last("Transpose", perm=w.options["order"]),
    "reshape": lambda w: w.last("Reshape", [*w.inputs(), w.integers([0, *w.options["shape"]])]),  # 0: samples
    "slice": _slice,
    "softmax": lambda w: w.last("Softmax", axis=1),
    "stochastic_depth": Writing.leave_out,
}


def to_onnx(graph, weights):
    """Returns the onnx.ModelProto of a graph.json and arrays by their names. Throws AntichainError for an
    operator that ONNX does not have."""
    if sum(array.nbytes for array in weights.values()) >= MOST_BYTES - (64 << 20):
        raise AntichainError(
            "the weights have 2 GiB, and an ONNX file holds less: keep the network as NAME.antichain"
        )
    w = Writing(graph, weights)
    logits = graph["nodes"][-1]["inputs"][0]
    nodes = needed(graph["nodes"], [logits], lambda n: [n["name"]], lambda n: n["inputs"])
    for node in nodes:
        w.begin(node)
        alike = FROM_ALIKE.get((node["op"], w.options.get("function")))
        w.last(alike) if alike else ROWS.get(node["op"], _no_operator)(w)

    def info(name):
        shape = ["batch", *w.shapes[name][1:]]
        kind = onnx.TensorProto.INT32 if name in w.whole_inputs else onnx.TensorProto.FLOAT
        return helper.make_tensor_value_info(w.output_of(name), kind, shape)

    used = {logits, *(name for node in nodes for name in node["inputs"])}
    inputs = [info(i["name"]) for i in graph["inputs"] if i["name"] in used]
    made = helper.make_graph(w.nodes, graph["model"], inputs, [info(logits)], w.initializers)
    opset = helper.make_opsetid("", names.WRITTEN_OPSET)
    return helper.make_model(made, ir_version=IR_VERSION, opset_imports=[opset], producer_name="antichain")


def export_onnx(folder, file):
    """Writes a folder NAME.antichain as an ONNX file. Throws AntichainError."""
    folder = pathlib.Path(folder)
    try:
        graph = json.loads((folder / GRAPH).read_text())
        weights = safetensors.read(folder / WEIGHTS)
        model = to_onnx(graph, weights)
    except OSError as problem:
        what = f"a folder NAME.antichain has {GRAPH} and {WEIGHTS}"
        raise AntichainError(f"can't read {problem.filename}: {problem.strerror}: {what}") from problem
    except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as problem:
        raise AntichainError(
            f"{folder} is no network with its weights ({type(problem).__name__}: {problem}): antichain info "
            f"--graph {folder} says what is wrong"
        ) from problem
    write_whole(file, model.SerializeToString())
    return len(weights)
