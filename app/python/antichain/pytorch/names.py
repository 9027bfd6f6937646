"""Names for calls.

A call with parameters has the path of its module, so that its parameters have the names of the state_dict. So
has a call of a module of torch.nn without parameters. What the user's own code calls has its module's path
and the function's name: "layer1.0.add".
"""

import re

from antichain.error import AntichainError
from antichain.pytorch.calls import Kind, Tensor, references
from antichain.translation import Names


def parameters(call):
    return [r for r in references(call) if isinstance(r, Tensor) and r.kind is Kind.parameter]


def parameters_of(calls):
    """Returns the parameters that each call uses, by its id, those among them of which an argument is
    computed; and the ids of the calls that compute with parameters and buffers alone."""
    used, without_samples = {}, set()
    for call in calls:
        refers = references(call)
        used[id(call)] = parameters(call)
        for r in refers:
            used[id(call)] += used[id(r)] if id(r) in without_samples else []
        own = (isinstance(r, Tensor) and r.kind is not Kind.input or id(r) in without_samples for r in refers)
        if refers and all(own):
            without_samples.add(id(call))
    return used, without_samples


def owner(parameters):
    """Returns the path of the module whose parameters a call uses: of "layer1.0.conv1.weight",
    "layer1.0.conv1".

    A parameter that has no such name ("features.1.0.layer_scale") is its own owner.
    """
    names = [*dict.fromkeys(parameter.name for parameter in parameters)]
    paths = {name.rpartition(".")[0] for name in names if name.endswith((".weight", ".bias"))}
    if len(names) > 1:
        paths = paths or {name.rpartition(".")[0] for name in names}
    if names and len(paths) != 1:
        return names[0] if len(names) == 1 else None
    return paths.pop() if paths else None


MOST_LETTERS = 200  # of a name; the program reads 256 bytes, and names of helpers are longer


def readable(name):
    """Returns a name that the program reads: letters, digits and a few signs."""
    return re.sub(r"[^A-Za-z0-9_.+-]", "_", name)[:MOST_LETTERS] or "_"


def name_calls(calls, taken, problems=None):
    """Sets the name of each call. Where two calls use the same parameter, it notes a sentence in `problems`,
    or throws it."""
    users = {}
    used, without_samples = parameters_of(calls)
    for call in calls:
        for parameter in used[id(call)] if id(call) not in without_samples else []:
            first = users.setdefault(parameter.name, call)
            if first is call:
                continue
            said = (
                f"the parameter {parameter.name} is used twice ({first.where}; then by '{call.key}', "
                f"{call.where}), but each use has parameters of its own; make a module for each use"
            )
            if problems is None:
                raise AntichainError(said)
            if said not in problems:
                problems.append(said)
    names = Names(taken)
    for call in calls:
        own = owner(used[id(call)]) if id(call) not in without_samples else None
        if own:
            call.name = names.unique(readable(own))
    for call in calls:
        if call.name:
            continue
        where = call.where
        own = where.module and (where.standard or where.module.split(".")[-1] == call.key)
        path = where.module if own else ".".join(filter(None, (where.module, call.key)))
        call.name = names.unique(readable(path))
