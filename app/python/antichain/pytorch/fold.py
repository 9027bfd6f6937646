"""Carries out what a captured module computes of no input and no parameter: coordinates, masks, indices,
zeros. What comes out is a constant, as a tensor that the code makes while it runs is one.

Buffers that the state_dict leaves out (persistent=False) are constants, too, and so are those of whole
numbers, which are not trained, and masks, which have -inf.
"""

import dataclasses

import torch

from antichain.pytorch.calls import Call, Kind, Tensor, map_references, references

# Functions that use only the shape of their first argument.
OF_A_SHAPE = ("full_like", "new_full", "new_ones", "new_zeros", "ones_like", "zeros_like")
DRAWING = ("bernoulli", "dropout", "empty", "multinomial", "new_empty", "rand", "stochastic_depth", "uniform")


def fold(captured, state):
    """Returns what was captured without the calls whose results are known. `state` are the names of the
    state_dict."""
    known, parts = {}, {}  # constants that stand for calls, and tuples that calls return, by id
    tensors, calls = dict(captured.tensors), []

    def constant(name, value):
        tensors[name] = value
        return Tensor(name, Kind.constant, tuple(value.shape))

    def now(r):
        if isinstance(r, Call):
            return known.get(id(r), r)
        if r.kind is not Kind.buffer:
            return r
        numbers = tensors[r.name]
        mask = numbers.dim() > 1 and numbers.isneginf().any()
        fixed = r.name not in state or not numbers.is_floating_point() or mask
        return dataclasses.replace(r, kind=Kind.constant) if fixed else r

    def is_known(call):
        if call.key == "getitem" and id(call.args[0]) in parts:
            return True
        drawn = call.key.startswith(DRAWING) or call.key == "normal"
        of = references(call)[1:] if call.key in OF_A_SHAPE else references(call)
        return not drawn and all(isinstance(r, Tensor) and r.kind is Kind.constant for r in of)

    def value_of(r):
        if id(r) in parts:
            return parts[id(r)]
        if isinstance(r, Tensor) and r.name in tensors:
            return tensors[r.name]
        return torch.zeros(r.shape)

    for call in captured.calls:
        call.args, call.kwargs = map_references(now, (call.args, call.kwargs))
        if not is_known(call):
            calls.append(call)
            continue
        args, kwargs = map_references(value_of, (call.args, call.kwargs))
        value = call.function(*args, **kwargs)
        if isinstance(value, torch.Tensor):
            known[id(call)] = constant(f"constant.{len(tensors)}", value)
        else:
            parts[id(call)] = value
    outputs = [now(output) for output in captured.outputs]
    return dataclasses.replace(captured, calls=calls, outputs=outputs, tensors=tensors)
