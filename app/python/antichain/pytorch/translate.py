"""Makes nodes of graph.json of calls. The table of functions is operators.py; here is what its rows have at
hand, beside what antichain/translation.py has for every framework.
"""

import dataclasses

from antichain.error import AntichainError
from antichain.pytorch.calls import Call, Kind, Tensor, map_references, references
from antichain.translation import Names, Shaping, Unsupported, Value, attempt, refuse_if, unknown


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


class Translation(Shaping):
    """The nodes made so far, and the call that is being translated. Rows of the table call its methods."""

    def __init__(self, batch, names):
        super().__init__(batch)
        self.names = names
        self.nodes = []
        self.made = set()  # the nodes' names
        self.shapes = {}  # that nodes give parameters, by their names in the module
        self.state = {}  # names that parameters and buffers have in graph.json, by those of the module
        self.parameters = []  # the module's names of those that nodes have
        self.buffers = []
        self.call = None

    def new_node(self, op, inputs, options, helper, parts, shapes):
        """Adds a node and returns its name. The first node that is no helper has the call's name, and so the
        call's parameters."""
        call = self.call
        shared = self.uses(parts, shapes)
        mine = not helper and call.name not in self.made
        name = call.name if mine else self.names.unique(f"{call.name}.{op}")
        self.made.add(name)
        self.nodes.append(Node(name, op, inputs, options, call.where, shared))
        return name

    def uses(self, tensors, shapes):
        """Notes that the call's node has these parameters or buffers, by the names that operators give them,
        and returns which of them are parameters of earlier nodes, by the names that they have there. One
        without a name has the node's."""
        shared = {}
        for own, t in tensors.items():
            kind = Kind.buffer if own.startswith("running_") else Kind.parameter
            if not isinstance(t, Tensor) or t.kind is not kind:
                said = t if isinstance(t, Tensor) else "computed"
                raise Unsupported(f"a {own.replace('_', ' ') or 'factor'} that is {said},")
            first, shape = self.state.get(t.name), shapes.get(own)
            if first is None:
                self.shapes[t.name] = shape
                self.enter(t.name, own)
            elif kind is Kind.buffer:
                raise Unsupported("a batch norm that is called twice, whose statistics change twice,")
            else:
                refuse_if(shape != self.shapes[t.name], f"{t}, which has another shape where it is used first,")
                shared[own] = first
                continue
            (self.parameters if kind is Kind.parameter else self.buffers).append(t.name)
        return shared

    @staticmethod
    def parameter_shape(t):
        return parameter(t, "a factor")

    def enter(self, name, own):
        self.state[name] = f"{self.call.name}.{own}" if own else self.call.name


def parameter(t, what):
    """Returns the shape of a weight, which must be a parameter as the module has it."""
    if not isinstance(t, Tensor) or t.kind is not Kind.parameter:
        said = t if isinstance(t, Tensor) else "computed"
        raise Unsupported(f"{what} that is {said}, not a parameter of the model,")
    return t.shape


def translate(captured, names_taken, rows):
    """Returns the Translation of the calls, the values of the outputs in a list, and problems (as
    antichain.translation.attempt has them), with which the others mean nothing. `rows` is the table, by the
    calls' keys."""
    known, lost = {}, set()  # by id

    def value_of(r):
        return known[id(r)] if isinstance(r, Call) else images if r.kind is Kind.input else r

    used = [r for c in captured.calls for r in references(c)]
    first = next((r for r in used if isinstance(r, Tensor) and r.kind is Kind.input), None)
    if first is None:
        raise AntichainError("the model's output does not depend on its input")
    images = dataclasses.replace(unknown(first.shape), node="images")
    t = Translation(first.shape[0], Names([*names_taken, *(c.name for c in captured.calls)]))

    def make(call):
        t.call = call
        refuse_if(any(id(r) in lost for r in references(call)), "")  # a part of what was not translated
        known[id(call)] = value = rows.make(t, call.key, *map_references(value_of, (call.args, call.kwargs)))
        last = t.nodes[-1] if t.nodes else None
        if isinstance(value, Value) and last and last.name == value.node and last.call is None:
            last.call, last.order = call, value.order

    def stand_in(call):
        known[id(call)] = unknown(call.shape or ())
        if call.shape is None:
            lost.add(id(call))

    problems = attempt(captured.calls, make, stand_in)
    return t, [value_of(output) for output in captured.outputs], problems
