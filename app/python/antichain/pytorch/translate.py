"""Makes nodes of graph.json of calls. The table of functions is in operators/; here is what its rows have at
hand, beside what antichain/translation has for every framework.
"""

import contextlib
import dataclasses
import math
import re

import torch

from antichain.graph_operators import needed
from antichain.pytorch.calls import Call, Kind, Tensor, map_references, references
from antichain.translation import CommonOperators, Joined, Names, Padded, Repeated, Unsupported, Value
from antichain.translation import Widened, attempt, natural, natural_of, refuse_if, unknown


@dataclasses.dataclass
class Node:
    """A node of graph.json."""

    name: str
    op: str
    inputs: list
    options: dict
    where: object
    shared: dict  # full names of its parameters that earlier nodes have, by the names it gives them
    call: Call = None  # whose result it computes, its axes read in `order`
    order: tuple = ()


@dataclasses.dataclass(frozen=True)
class Noise:
    """Random numbers of stochastic depth: 1 with probability `kept`, else 0; then divided by `divided`."""

    shape: tuple
    kept: float = None
    divided: float = None

    def __str__(self):
        return "random numbers"


class Translation(CommonOperators):
    """The nodes made so far, and the call that is being translated. Rows of the table call its methods."""

    def __init__(self, batch, names, constants):
        super().__init__(batch)
        self.names = names
        self.nodes = []
        self.made = set()  # the nodes' names
        self.shapes = {}  # that nodes give parameters, by their names in the module
        self.state = {}  # names that parameters and buffers have in graph.json, by those of the module
        self.parameters = []  # the module's names of those that nodes have
        self.buffers = []
        self.call = None
        self.constants = constants  # values of tensors that the code makes, by name
        self.source = None  # an input of the network, of whose samples constants are
        self.filled_ones = {}  # by their shapes and numbers
        self.leaves = {}  # parameters and buffers that steps read, by the nodes of their values
        self.kept = {}  # buffers that a step changes, by the names that it gives them, likewise
        self.steps = {}  # operator, inputs and options of what is computed of them, likewise

    def new_node(self, op, inputs, options, helper, parts, shapes):
        """Adds a node and returns its name. The first node that is no helper has the call's name, and so the
        call's parameters."""
        call = self.call
        parts = {own: self.own_tensor(part) for own, part in parts.items()}
        without = [name in self.steps or name in self.leaves for name in inputs]
        if any(without):
            refuse_if(not all(without), "a tensor without samples beside one that has them")
            refuse_if(parts, f"a {op} of parameters that has parameters of its own")
            self.steps[name := f"step {len(self.steps)}"] = (op, inputs, options)
            return name
        if any(self.is_computed(own, part) for own, part in parts.items()):
            op, options, parts = self.computed(op, options, parts)
            shapes = {own: tuple(part.shape) for own, part in parts.items()}
        mine = not helper and call.name not in self.made
        name = call.name if mine else self.names.unique(f"{call.name}.{op}")
        self.made.add(name)
        shared = self.uses(name, parts, shapes)
        self.nodes.append(Node(name, op, inputs, options, call.where, shared))
        return name

    def uses(self, node, tensors, shapes):
        """Notes that a node has these parameters or buffers, by the names that operators give them, and
        returns which of them are parameters of earlier nodes, by the names that they have there. One without
        a name has the node's."""
        shared = {}
        for own, t in tensors.items():
            kinds = [Kind.buffer] if own.startswith("running_") else [Kind.parameter, Kind.buffer]
            if not isinstance(t, Tensor) or t.kind not in kinds:
                said = t if isinstance(t, Tensor) else "computed"
                raise Unsupported(f"a {own.replace('_', ' ') or 'factor'} that is {said},")
            first, shape = self.state.get(t.name), shapes.get(own)
            if first is None or t.kind is Kind.buffer:
                statistics = first and own.startswith("running_")
                refuse_if(statistics, "a batch norm that is called twice, whose statistics change twice,")
                self.shapes[t.name] = shape
                self.enter(t.name, own, node)
                (self.parameters if t.kind is Kind.parameter else self.buffers).append(t.name)
            else:
                differs = shape != self.shapes[t.name]
                refuse_if(differs, f"{t}, which has another shape where it is used first,")
                shared[own] = first
        return shared

    # What is computed of parameters

    def leaf(self, t):
        """Returns a parameter or a buffer as a value without samples."""
        stored = (1, *t.shape)
        self.leaves[name := f"the {t.kind.name} {t.name}"] = t
        return Value(name, stored, natural_of(stored, False))

    def tensor(self, x, what="an input"):
        if isinstance(x, Padded):
            pads = zip((-2, -1), x.zeros[:2], x.zeros[2:])
            ends = [(x.of.rank + axis, before, after) for axis, before, after in pads]
            return self.within(x.of, ends, 0)
        if isinstance(x, Repeated):
            before, after = x.of.shape[: x.axis + 1], x.of.shape[x.axis + 1 :]
            apart = self.reshape(x.of, (*before, 1, *after), helper=True)
            wide = self.tensor(Widened(apart, (*before, x.times, *after)))
            return self.reshape(wide, (*before[:-1], before[-1] * x.times, *after), helper=True)
        if isinstance(x, Widened):  # what is repeated is stored
            return self.formula(["where 1 b a"], self.filled(x.shape, [0.0]), x.of)
        if isinstance(x, Tensor) and x.kind in (Kind.parameter, Kind.buffer):
            return self.leaf(x)
        of_samples = isinstance(x, Tensor) and x.kind is Kind.constant and x.shape[:1] == (self.batch,)
        return self.constant_value(x, len(x.shape)) if of_samples else super().tensor(x, what)

    # What the code makes while it runs

    def filled(self, shape, values):
        """Returns a value of these numbers for each sample, or of one number."""
        key = (tuple(shape), tuple(values))
        if key not in self.filled_ones:
            options = {"shape": [*shape[1:]], "values": [*values]}
            self.filled_ones[key] = self.emit("constant", [self.source], options, helper=True)
        return self.filled_ones[key]

    def constant_value(self, x, rank):
        """Returns a constant tensor as a value of that many axes, the samples' among them."""
        refuse_if(len(x.shape) > rank, f"a constant tensor of {x.shape} beside one of {rank} axes")
        numbers = self.constants[x.name].float().reshape((1,) * (rank - len(x.shape)) + x.shape)
        same = len(numbers) in (1, self.batch) and (numbers == numbers[:1]).all()
        refuse_if(not same, f"a constant tensor of {x.shape}, which mixes samples,")
        hidden = numbers == -math.inf  # as masks of scores have it
        if hidden.any():
            kept, places = (
                self.of_numbers(x) for x in (numbers.masked_fill(hidden, 0), hidden.float())
            )
            return self.formula(["where b c a"], kept, places, -math.inf)
        return self.of_numbers(numbers)

    def of_numbers(self, numbers):
        """Returns numbers that are the same for each sample, the first axis theirs, as a value."""
        refuse_if(not numbers.isfinite().all(), "a constant tensor that is not finite")
        values = numbers[0].flatten().tolist()
        values = values[:1] if len(set(values)) == 1 else values
        return self.filled((self.batch, *numbers.shape[1:]), values)

    def joined_constant(self, x):
        known = isinstance(x, Tensor) and x.kind is Kind.constant and x.shape
        # torch.export has tensors without numbers.
        known = known and type(self.constants[x.name]) is torch.Tensor
        first = x.shape[0] if known else self.batch
        if first == self.batch or first % self.batch:
            return x
        numbers = self.constants[x.name].float().reshape(self.batch, -1, *x.shape[1:])
        same = numbers.isfinite().all() and (numbers == numbers[:1]).all()
        return Joined(self.filled(numbers.shape, numbers[0].flatten().tolist()), (0, 1)) if same else x

    def within(self, x, ends, value):
        """Returns x with so many equal numbers before and after it along axes; fewer than none are cut
        off."""
        for axis, before, after in ends:
            x = self.part(x, axis, max(0, -before), x.shape[axis] - max(0, -after))
            edges = [
                [self.filled((*x.shape[:axis], count, *x.shape[axis + 1 :]), [float(value)])] * (count > 0)
                for count in (before, after)
            ]
            x = self.concat([*edges[0], x, *edges[1]], axis)
        return x

    def constant_beside(self, x, like):
        """Returns a constant tensor as a value that has samples where `like` has them."""
        if like.sampled:
            return self.constant_value(x, len(x.shape) + 1)
        options = {"shape": [*x.shape] or [1], "values": self.constants[x.name].flatten().tolist()}
        y = self.emit("constant", [like], options, helper=True)
        return y if x.shape else dataclasses.replace(y, order=())

    def matrices(self, numbers, like):
        """Returns a known matrix as a value, once for each matrix of `like`."""
        shape, values = (*like.shape[:-2], *numbers.shape), numbers.flatten().tolist()
        if like.sampled:
            return self.filled(shape, values * math.prod(like.shape[1:-2]))
        options = {"shape": [*shape], "values": values * math.prod(like.shape[:-2])}
        return self.emit("constant", [like], options, helper=True)

    def number_of(self, x, beside):
        """Returns the number of a constant that is one, or has equal ones; or a constant as a value, where
        others are beside it; or x."""
        if not isinstance(x, Tensor) or x.kind is not Kind.constant:
            return x
        numbers = self.constants[x.name]
        if numbers.numel() == 1:
            return numbers.item()
        sampled = [v.shape for v in beside if isinstance(v, Value) and v.sampled]
        if not sampled and len(set(numbers.flatten().tolist())) == 1:
            return numbers.flatten()[0].item()
        computed = [v for v in beside if isinstance(v, Value)]
        of_samples = self.joined_constant(x) is not x
        refuse_if(not computed or of_samples, f"{x} of {x.shape} beside no tensor that is computed")
        if not sampled:
            return self.constant_beside(x, computed[0])
        rank = max(len(shape) for shape in sampled)
        whole = tuple(max(extents) for extents in zip(*(s for s in sampled if len(s) == rank)))
        aligned = (1,) * (rank - len(x.shape)) + x.shape
        repeats = len(aligned) == rank and all(n in (1, m) for n, m in zip(aligned, whole))
        if repeats and (numbers == numbers.flatten()[0]).all():
            return numbers.flatten()[0].item()
        return self.constant_value(x, rank)

    def parameter_shape(self, x):
        return self.weight(x, "a factor")

    def weight(self, x, what="a weight"):
        """Returns the shape of a weight: a parameter as the module has it, or what is computed of some."""
        if isinstance(x, Value) and not x.sampled or isinstance(x, Tensor) and x.kind is Kind.buffer:
            return x.shape
        return parameter(x, what)

    def before_formula(self, x, step):
        """Returns what the formula of one step was computed of that gave x, or None where another did."""
        made = next((node for node in reversed(self.nodes) if node.name == x.node), None)
        is_it = made and made.op == "elementwise" and made.options == {"steps": [step]}
        return dataclasses.replace(x, node=made.inputs[0]) if is_it else None

    def places_of(self, index):
        """Returns the numbers of an index, which is a constant."""
        values = self.constants.get(index.name) if isinstance(index, Tensor) else None
        known = values is not None and not values.is_floating_point() and values.dtype is not torch.bool
        refuse_if(not known, "an index that is computed")
        return values.flatten().tolist()

    def kept_by_steps(self, x, buffers):
        """Notes which buffers the step has that computes x, by its names for them."""
        self.kept[x.node] = buffers

    @contextlib.contextmanager
    def apart_as(self, like):
        """Has the call's shape with these axes apart, too."""
        call, first = self.call, like.of.shape[: len(like.lead)]
        if call.shape and (like.at == 0 or len(call.shape) == like.rank):
            shape = (*first, *call.shape[: like.at], *call.shape[like.at + 1 :])
            self.call = dataclasses.replace(call, shape=shape)
        try:
            yield
        finally:
            self.call = call

    def own_tensor(self, x):
        """Returns the parameter or the buffer that a value is, its axes in their order, or the value."""
        return self.leaves.get(x.node, x) if isinstance(x, Value) and x.plain else x

    def without_ones_behind(self, x, rank):
        if not isinstance(x, Value):
            return x, rank - 1
        source = self.own_tensor(self.reshaped.get((x.node, x.stored), x))
        seen = list(x.shape)
        while seen and seen[-1] == 1:
            seen.pop()
        own = isinstance(source, Tensor) and x.plain
        if not own or without_ones_before(source.shape) != without_ones_before(seen):
            return x, rank - 1
        return source, rank - 1 - (len(x.shape) - len(seen) if source.shape else 0)

    def is_computed(self, own, part):
        if own.startswith("running_"):
            return False
        part = self.own_tensor(part)
        return isinstance(part, Value) or isinstance(part, Tensor) and part.kind is Kind.buffer

    def computed(self, op, options, parts):
        """Returns the operator whose parameters are computed, its options, and its own parameters and buffers
        by their names."""
        steps, places, own, of_steps = [], {}, {}, {}

        def input_of(node):
            if node not in self.leaves:
                return f"s{step_of(node)}"
            t = self.leaves[node]
            name = t.name.removeprefix(f"{self.call.name}.").replace(".", "_")
            name = name if t.name.startswith(f"{self.call.name}.") else t.name.rpartition(".")[2]
            while own.setdefault(name, t) is not t or name in kept or re.fullmatch(r"s\d+|u|v", name):
                name += "_"
            return name

        def step_of(node):
            if node not in places:
                of, inputs, its = self.steps[node]
                for name, t in self.kept.get(node, {}).items():
                    refuse_if(name in of_steps, "two weights of one operator by spectral_norm")
                    of_steps[name] = t
                inputs = [input_of(i) for i in inputs]
                places[node] = len(steps)
                steps.append({"op": of, "inputs": inputs, **({"options": its} if its else {})})
            return places[node]

        computed = {name: part for name, part in parts.items() if self.is_computed(name, part)}
        kept = {name: part for name, part in parts.items() if name not in computed}
        values = []
        for name, part in computed.items():
            value = self.plain(part if isinstance(part, Value) else self.leaf(part))
            if value.node in self.leaves:
                inputs, shape = [input_of(value.node)], list(value.stored[1:]) or [1]
                steps.append({"op": "reshape", "inputs": inputs, "options": {"shape": shape}})
                values.append({"parameter": name, "node": len(steps) - 1})
            else:
                values.append({"parameter": name, "node": step_of(value.node)})
        of = {"of": {"op": op, **({"options": options} if options else {})}}
        for field, kind in (("parameters", Kind.parameter), ("buffers", Kind.buffer)):
            specs = [{"name": n, "shape": list(t.shape)} for n, t in own.items() if t.kind is kind]
            of |= {field: specs} if specs else {}
        return "computed", {**of, "nodes": steps, "values": values}, {**kept, **own, **of_steps}

    def enter(self, name, own, node=None):
        node = node or self.call.name
        is_now = f"{node}.{own}" if own else node
        was = self.state.setdefault(name, is_now)
        refuse_if(was != is_now, f"the parameter {name}, which {was} is already,")


def without_ones_before(shape):
    shape = list(shape)
    while shape and shape[0] == 1:
        shape.pop(0)
    return shape


def parameter(t, what):
    """Returns the shape of a weight, which must be a parameter as the module has it."""
    if not isinstance(t, Tensor) or t.kind is not Kind.parameter:
        said = t if isinstance(t, Tensor) else "computed"
        raise Unsupported(f"{what} that is {said}, not a parameter of the model,")
    return t.shape


def translate(captured, examples, names_taken, rows):
    """Returns the Translation of the calls on inputs by their names, the values of the outputs in a list, and
    problems (as antichain.translation.attempt has them), with which the others mean nothing. `rows` is the
    table, by the calls' keys."""
    known, lost = {}, set()  # by id

    def value_of(r):
        if isinstance(r, Call):
            return known[id(r)]
        return Value(r.name, r.shape, natural(len(r.shape))) if r.kind is Kind.input else r

    names = Names([*names_taken, *(c.name for c in captured.calls)])
    t = Translation(len(next(iter(examples.values()))), names, captured.tensors)
    used = {r.name: r for c in captured.calls for r in references(c) if getattr(r, "kind", "") is Kind.input}
    used = sorted(used.values(), key=lambda r: not examples[r.name].is_floating_point())
    t.source = value_of(used[0]) if used else None

    def make(call):
        t.call = call
        refuse_if(any(id(r) in lost for r in references(call)), "")  # a part of what was not translated
        known[id(call)] = value = rows.make(t, call.key, *map_references(value_of, (call.args, call.kwargs)))
        other = isinstance(value, Joined) and value.shape != tuple(call.shape or ())
        refuse_if(other, f"'{call.key}' of {value}")
        last = t.nodes[-1] if t.nodes else None
        if isinstance(value, Value) and last and last.name == value.node and last.call is None:
            last.call, last.order = call, value.order

    def stand_in(call):
        known[id(call)] = unknown(call.shape or ())
        if call.shape is None:
            lost.add(id(call))

    problems = attempt(captured.calls, make, stand_in)
    outputs = [value_of(output) for output in captured.outputs]
    ends = [getattr(value, "of", value) for value in outputs]
    ends = [value.node for value in ends if isinstance(value, Value)]
    t.nodes = needed(t.nodes, ends, lambda node: [node.name], lambda node: node.inputs)
    return t, outputs, problems
