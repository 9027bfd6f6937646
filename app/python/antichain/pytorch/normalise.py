"""Makes calls (calls.py) of a captured graph: the same calls, whichever way it was captured.

* Operators, methods and functions become plain functions, known by their names.
* A call that works in place becomes one that does not. Who reads the changed tensor later reads the new one.
  Where it changes a part of a tensor (x[:, 0] = y), the call `assigned` gives the whole.
* Conversions between floating-point types, or between those of whole numbers, and copies are left out. A
  conversion of whole numbers or truth values to wider ones is the call `widened`, and one to truth values
  the call `truth`.
"""

import collections
import inspect
import operator

import torch

from antichain.error import AntichainError
from antichain.pytorch.calls import Call, Captured, Tensor, map_leaves
from antichain.pytorch.spectral import spectral_norm

# Functions of other names that do the same as these.
SAME = {
    **{"truediv": "div", "true_divide": "div", "divide": "div", "multiply": "mul", "subtract": "sub"},
    **{"__add__": "add", "__mul__": "mul", "concat": "cat", "concatenate": "cat", "moveaxis": "movedim"},
    **{"feature_dropout": "dropout2d", "swapaxes": "transpose", "swapdims": "transpose"},
    **{"zero": "zeros_like", "fill": "full_like"},
    **{"unsafe_chunk": "chunk", "unsafe_split": "split", "split_with_sizes": "split", "_unsafe_view": "view"},
}
COPIES = {"contiguous", "clone", "alias", "lift_fresh_copy", "detach_copy"}
CONVERSIONS = {"to", "float", "double", "int", "long", "type", "type_as", "_to_copy", "to_copy"}


# What calls in place do that have no other form, or one without a derivative.
MAKING = {
    "zero": torch.zeros_like,
    "fill": torch.full_like,
    "copy": lambda x, src: src.expand_as(x),
}
# Calls that give parts of a tensor, with their arguments behind it.
PARTS = {
    "getitem": ("index",),
    "narrow": ("dim", "start", "length"),
    "select": ("dim", "index"),
    "slice": ("dim", "start", "end", "step"),
}


def assigned(whole, part, places):
    """Returns a tensor with other numbers at some places, a range for each of its first axes."""
    whole = whole.clone()
    view = whole[tuple(slice(*ends) for ends in places)]
    view.copy_(part.reshape(view.shape) if part.numel() == view.numel() else part)
    return whole


def places_of(call):
    """Returns the places of what a call takes of its first argument, which is a part of that, as `assigned`
    has them; or None where it is none."""
    whole, *given = call.args
    shape = getattr(whole, "shape", None)
    if not shape or call.key not in PARTS:
        return None
    at = {"dim": 0, "start": 0, "end": None, "step": 1, **dict(zip(PARTS[call.key], given)), **call.kwargs}
    if call.key == "getitem":
        index = at["index"] if isinstance(at["index"], tuple) else (at["index"],)
    else:
        if call.key == "narrow":
            at["end"] = at["start"] + at["length"]
        axis = at["dim"] % len(shape)
        own = at["index"] if call.key == "select" else slice(at["start"], at["end"], at["step"])
        index = (*[slice(None)] * axis, own)
    return ranges_of(shape, index)


def ranges_of(shape, index):
    """Returns where the ranges of an index begin and end, or None where it has others."""
    if len(index) > len(shape) or not all(isinstance(i, slice) or type(i) is int for i in index):
        return None
    ends = [i if isinstance(i, slice) else slice(i, i + 1 or None) for i in index]
    ranges = [range(extent)[own] for extent, own in zip(shape, ends)]
    return tuple((r.start, r.stop) for r in ranges) if all(r.step == 1 and r for r in ranges) else None


def _named(function, args, kwargs):
    """Returns args and kwargs with all but the first argument by name, where the function's names are
    known."""
    names = []
    if hasattr(function, "_schema"):
        names = [a.name for a in function._schema.arguments]
    elif inspect.isfunction(function):
        parameters = inspect.signature(function).parameters
        takes_more = any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters.values())
        names = [] if takes_more else [*parameters]
    if not names:
        return args, kwargs
    kwargs = {**kwargs, **dict(zip(names[1:], args[1:]))}
    if not args:
        return (kwargs.pop(names[0]),), kwargs
    return args[:1], kwargs


def _widens(node):
    """Returns by how much a conversion widens: from truth values over whole numbers to floating-point
    ones."""
    source = next(iter((*node.args, *node.kwargs.values())), None)
    types = [n.meta.get("dtype") if isinstance(n, torch.fx.Node) else None for n in (source, node)]
    before, after = (t and t.is_floating_point + (t is not torch.bool) for t in types)
    return 0 if None in types else after - before


def _pure(node, where):
    """Returns the name and the function of a node, and whether the node works in place."""
    target = node.target
    if node.op == "call_method":
        name, home = target, torch.Tensor
    elif hasattr(target, "_schema"):  # torch.ops.aten.relu_.default
        name, home = target._schema.name.split("::")[1], torch.ops.aten
    else:
        name, home = target.__name__, None
    if target in (operator.iadd, operator.isub, operator.imul, operator.itruediv):
        return name[1:], getattr(operator, name[1:]), True
    if target is getattr:  # x.mT
        return node.args[1], lambda x, *of: getattr(x, *of), False
    if name == spectral_norm.__name__:
        return name, spectral_norm, False
    in_place = name.endswith("_") and not name.endswith("__")
    if home is None:
        if in_place and hasattr(torch, name[:-1]):
            return name[:-1], getattr(torch, name[:-1]), True
        return name, target, in_place
    pure = name[:-1] if in_place else name
    made = MAKING.get(pure) if in_place else None
    function = made or getattr(home, pure, None)
    if hasattr(target, "_schema") and not made:  # not every operator in place has the same overload as the one that is not
        function = getattr(function, target._overloadname, None) or getattr(torch.Tensor, pure, None)
    if function is None:
        why = "has no form that leaves its input alone; compute a new tensor"
        raise AntichainError(f"'{name}' ({where}) {why}")
    return pure, function, in_place


def normalise(graph, tensors, made_by):
    """Returns what was captured (Captured), from a graph as capture_fx.capture and capture_export.capture
    give it."""
    now = {}  # the Call or Tensor that a node of the graph stands for, once everything before was done
    nodes_of = collections.defaultdict(list)  # the other way round, by id
    calls = []
    parts = {}  # by the nodes that are parts of others, the nodes of these, and how
    outputs = None

    def stands_for(node, value):
        now[node] = value
        nodes_of[id(value)].append(node)

    def latest(leaf):
        return now[leaf] if isinstance(leaf, torch.fx.Node) else leaf

    for node in graph.nodes:
        if node.op == "output":
            outputs = flat(map_leaves(latest, node.args[0]))
            continue
        if "tensor" in node.meta:
            stands_for(node, node.meta["tensor"])
            continue
        asserts = getattr(node.target, "__name__", "").startswith("_assert_tensor_metadata")
        if asserts or node.op == "get_attr":  # a part of the program, which its Region has
            continue
        where = node.meta["where"]
        if "region" in node.meta:
            region, given = node.meta["region"]
            calls.append(Call("region", region, map_leaves(latest, given), {}, where))
            stands_for(node, calls[-1])
            continue
        key, function, in_place = _pure(node, where)
        args, kwargs = _named(function, *map_leaves(latest, (node.args, node.kwargs)))
        in_place = kwargs.pop("inplace", False) or in_place
        key = SAME.get(key, key)
        shape = node.meta.get("shape")
        widens = _widens(node) if key in CONVERSIONS and args[0].shape == shape else -1
        if key in COPIES or widens == 0:
            stands_for(node, args[0])
            continue
        of_truth = node.meta.get("dtype") is torch.bool
        source = node.args[0] if node.args else None
        floats = isinstance(source, torch.fx.Node) and getattr(source.meta.get("dtype"), "is_floating_point", 0)
        if floats and getattr(kwargs.get("dtype"), "is_floating_point", False):  # softmax(x, 1, dtype=…)
            kwargs.pop("dtype")
        key = "widened" if widens > 0 else "truth" if key in CONVERSIONS and of_truth else key
        if key == "view":  # of a tensor of which a copy was left out
            function = torch.Tensor.reshape
            args, kwargs = (*args, *kwargs.values()), {}
        call = Call(key, function, args, kwargs, where, shape, in_place, truth=of_truth)
        calls.append(call)
        stands_for(node, call)
        if places_of(call):
            parts[node] = node.args[0], places_of(call)
        changed = node.args[0] if in_place else None
        while changed is not None:
            for reader in nodes_of.pop(id(now[changed])):
                stands_for(reader, calls[-1])
            changed, places = parts.get(changed, (None, None))
            if changed is not None:
                given = now[changed], calls[-1], places
                calls.append(Call("assigned", assigned, given, {}, where, given[0].shape))
    return Captured(calls, outputs, tensors, made_by)


def flat(output):
    """Returns the tensors of what the model returns. The model's own output comes first; numbers and
    texts are left out."""
    if isinstance(output, dict):
        return [tensor for value in output.values() for tensor in flat(value)]
    if isinstance(output, (tuple, list)):
        return [tensor for value in output for tensor in flat(value)]
    return [output] if isinstance(output, (torch.Tensor, Call, Tensor)) else []
