"""Names for calls.

A call with parameters has the path of its module, so that its parameters have the names of the state_dict. So
has a call of a module of torch.nn without parameters. What the user's own code calls has its module's path
and the function's name: "layer1.0.add".
"""

import re

from antichain.pytorch.calls import Kind, Tensor, references
from antichain.translation import Names


def parameters(call):
    return [r for r in references(call) if isinstance(r, Tensor) and r.kind is Kind.parameter]


def owner(call):
    """Returns the path of the module whose parameters a call uses: of "layer1.0.conv1.weight",
    "layer1.0.conv1".

    A parameter that has no such name ("features.1.0.layer_scale") is its own owner.
    """
    names = [parameter.name for parameter in parameters(call)]
    paths = {name.rpartition(".")[0] for name in names if name.endswith((".weight", ".bias"))}
    if names and len(paths) != 1:
        return names[0] if len(names) == 1 else None
    return paths.pop() if paths else None


MOST_LETTERS = 200  # of a name; the program reads 256 bytes, and names of helpers are longer


def readable(name):
    """Returns a name that the program reads: letters, digits and a few signs."""
    return re.sub(r"[^A-Za-z0-9_.+-]", "_", name)[:MOST_LETTERS] or "_"


def name_calls(calls, taken):
    """Sets the name of each call. Of calls that use the same parameters the first has their module's."""
    names = Names(taken)
    for call in calls:
        if own := owner(call):
            call.name = names.unique(readable(own))
    for call in calls:
        if call.name:
            continue
        where = call.where
        own = where.module and (where.standard or where.module.split(".")[-1] == call.key)
        path = where.module if own else ".".join(filter(None, (where.module, call.key)))
        call.name = names.unique(readable(path))
