"""Carries out, once, what an exported program computes of no input and no parameter: masks, positions, and
tables that are made of these. What it gives is a constant."""

import torch

# These give numbers that nobody has set: noise that is drawn into them.
EMPTY = ("empty", "new_empty")


def _draws(target):
    return torch.Tag.nondeterministic_seeded in getattr(target, "tags", ())


def _region(args):
    """Returns the part of a program that runs under a context of its own, and what it is given."""
    at = next(i for i, a in enumerate(args) if isinstance(a, torch.nn.Module))
    return args[at], args[at + 1 :]


class Known:
    """The values of the nodes that are known so far."""

    def __init__(self, program):
        self.parts = program.graph_module
        self.values = {}

    def carry_out(self, node):
        """Returns whether the node's value is known, once those of all before it were asked for."""
        if node.op == "get_attr":
            self.values[node] = getattr(self.parts, node.target)
        elif not all(n in self.values for n in node.all_input_nodes) or _draws(node.target):
            return False
        elif getattr(node.target, "__name__", "").startswith(EMPTY):
            return False
        else:
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), self.values.get)
            if isinstance(node.target, torch._ops.HigherOrderOperator):
                part, given = _region(args)
                self.values[node] = part(*given)
            else:
                self.values[node] = node.target(*args, **kwargs)
        return True
