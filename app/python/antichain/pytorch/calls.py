"""What a module computes, as a list of calls: the form that both ways of capturing are brought to.

A Call is one call of a pure function of PyTorch. Its arguments are plain values, Tensors by name, and earlier
calls, which stand for their results. Calls know where they come from in the user's code.
"""

import dataclasses
import enum
import os
import sys

import torch

from antichain import graph_operators


DECIDES = "the numbers of a tensor decide what is computed next"
SAME_FOR_ALL = "a model has to compute the same for all inputs"


class Kind(enum.Enum):
    input = 0
    parameter = 1
    buffer = 2
    constant = 3  # a tensor that the user's code makes while it runs


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A tensor that is not computed. `name` is its name in the state_dict, where it has one."""

    name: str
    kind: Kind
    shape: tuple

    def __str__(self):
        if self.kind is Kind.constant:
            return "a tensor that the code makes while it runs"
        return f"the {self.kind.name} {self.name}"


@dataclasses.dataclass(frozen=True)
class Where:
    """A place in the user's code. `module` is a path such as "layer1.0.conv1", "" for the whole model."""

    module: str = ""
    kind: str = ""  # the module's class
    standard: bool = False  # whether the class is one of torch.nn
    line: str = ""  # "resnet.py:92"

    def __str__(self):
        module = f"{self.module or 'the model'} ({self.kind})" if self.kind else self.module
        return ", ".join(part for part in (module, self.line) if part)


def is_users(file):
    """Says whether a file is neither PyTorch's, nor of this package, nor no file at all."""
    ours = tuple(os.path.dirname(f) + os.sep for f in (torch.__file__, os.path.dirname(__file__)))
    return not file.startswith(("<", *ours))


def line_here(outermost):
    """Returns "resnet.py:92", the line of the user's code that runs now, or "" where the function `outermost`
    calls PyTorch's own code only."""
    frame = sys._getframe(1)
    while frame and not is_users(frame.f_code.co_filename):
        frame = frame.f_back if frame.f_code is not outermost.__code__ else None
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}" if frame else ""


@dataclasses.dataclass(eq=False)
class Call:
    key: str  # the function's name, without the underscore of those that work in place: "relu"
    function: object
    args: tuple
    kwargs: dict
    where: Where
    shape: tuple = None  # of the result, where that is one tensor
    in_place: bool = False  # whether the user's code changes the first argument; the function does not
    name: str = ""  # unique among the calls
    truth: bool = False  # whether the result is truth values


@dataclasses.dataclass(frozen=True)
class Region:
    """A part of a program that runs under a context of its own, as a function. Of constants it gives
    constants; of anything else it is refused."""

    part: object
    refusal: str
    __name__ = "region"

    def __call__(self, *args):
        return self.part(*args)


@dataclasses.dataclass
class Captured:
    calls: list  # in the order in which they were made
    outputs: list  # calls (or Tensors): the first is the model's output, the others are auxiliary ones
    tensors: dict  # values of all parameters, buffers and constants, by name
    made_by: str


def map_leaves(change, value):
    """Returns `value` with change(leaf) in place of everything in it that is no tuple, list, dict or
    slice."""

    def mapped(v):
        return map_leaves(change, v)

    if isinstance(value, tuple):
        return tuple(map(mapped, value))
    if isinstance(value, list):
        return list(map(mapped, value))
    if isinstance(value, dict):
        return {key: mapped(v) for key, v in value.items()}
    if isinstance(value, slice):
        return slice(mapped(value.start), mapped(value.stop), mapped(value.step))
    return change(value)


def tensors_in(value):
    """Returns the torch tensors in a value, however nested."""
    found = []
    map_leaves(lambda leaf: found.append(leaf) if isinstance(leaf, torch.Tensor) else None, value)
    return found


def map_references(change, value):
    """Returns `value` with change(r) in place of every Call and Tensor r in it, however nested."""
    return map_leaves(lambda leaf: change(leaf) if isinstance(leaf, (Call, Tensor)) else leaf, value)


def references(call):
    """Returns the calls and tensors that a call uses, in the order of its arguments."""
    found = []
    map_references(found.append, (call.args, call.kwargs))
    return found


def needed(calls, outputs):
    """Returns those of the calls that the outputs depend on."""
    wanted = map(id, outputs)
    return graph_operators.needed(calls, wanted, lambda c: [id(c)], lambda c: map(id, references(c)))


def without_randomness(call, value_of):
    """Returns the result of a call that draws numbers as if it drew none, or None where it draws none."""
    if call.key in ("dropout", "dropout1d", "dropout2d", "dropout3d", "stochastic_depth"):
        return value_of(call.args[0])
    if call.key == "bernoulli":
        return torch.full_like(value_of(call.args[0]), (*call.args, *call.kwargs.values())[1])
    if call.kwargs.get("dropout_p"):  # of attention
        args, kwargs = map_references(value_of, (call.args, call.kwargs))
        return call.function(*args, **{**kwargs, "dropout_p": 0.0})
    return None


def carry_out(call, args, kwargs):
    return call.function(*args, **kwargs)


def replay(calls, tensors, inputs, random=True, run=carry_out, of=None):
    """Runs calls again. Yields each with its result.

    `tensors` and `inputs` give values by name. With random=False, dropout and stochastic depth are left out.
    `run` carries out a call. A result is dropped after its last use. `of` has the results of calls that are
    not among these, and other tensors, by id.
    """
    last = {}
    for call in calls:
        for r in references(call):
            last[id(r)] = call
    values = {}

    def value_of(r):
        if of and id(r) in of:
            return of[id(r)]
        if isinstance(r, Call):
            return values[id(r)]
        return inputs[r.name] if r.kind is Kind.input else tensors[r.name]

    for call in calls:
        value = None if random else without_randomness(call, value_of)
        if value is None:
            args, kwargs = map_references(value_of, (call.args, call.kwargs))
            value = run(call, args, kwargs)
        if id(call) in last:
            values[id(call)] = value
        yield call, value
        for r in references(call):
            if last[id(r)] is call:
                values.pop(id(r), None)
