"""The table of what each function of PyTorch becomes, one row a function. Rows are in the files beside this
one, one for each family of functions; here is what several of them have at hand.

A row's arguments behind the Translation have the names and the order that PyTorch has. What it can't
translate it refuses with Unsupported, which names the option and its value; arguments that a row does not
list are refused by the table.
"""

from antichain.graph_operators import pair as both_of
from antichain.translation import Table, refuse_if


ROWS = Table()

# Of layers/: what graph.json knows.
OPERATORS = [
    "activate (gelu, hardsigmoid, hardswish, relu6, sigmoid, silu)",
    *(
        "adaptive_average_pool add attention average_pool batch_norm class_token computed concat conv2d "
        "conv_transpose2d dropout elementwise embedding flatten gather global_average_pool group_norm "
        "interpolate layer_norm layer_scale linear matmul max_pool mean multiply permute relu reshape "
        "rotary slice softmax spectral_norm stochastic_depth"
    ).split(),
]


def within(what, eps, momentum=0.1):
    refuse_if(not eps > 0, f"{what} eps {eps}")
    refuse_if(not 0 <= momentum <= 1, f"{what} momentum {momentum}")


def is_number(x):
    return isinstance(x, (int, float)) and not isinstance(x, bool)


def pair(x):
    values = [int(v) for v in x] if isinstance(x, (tuple, list)) else [int(x)]
    refuse_if(len(values) > 2, f"a size of {len(values)} numbers (images have a height and a width)")
    return both_of(values if len(values) == 2 else values[0])


def axes_of(t, x, axes):
    return [t.axis(x, int(a)) for a in (axes if isinstance(axes, (tuple, list)) else [axes])]


def sizes(args):
    """Returns the numbers of x.view(1, 2), which may also be written x.view((1, 2))."""
    return list(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else list(args)


def given(**tensors):
    """Returns those that are given."""
    return {own: tensor for own, tensor in tensors.items() if tensor is not None}
