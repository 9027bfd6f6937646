"""One sentence about everything of a module that is not supported."""

import math

import torch

from antichain.error import AntichainError
from antichain.refusal import grouped, not_supported


def checked_number(name, value):
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number < math.inf:
        raise AntichainError(f"{name} is a number, 0 or more, not {value!r}")
    return number


def check_module(module):
    if not isinstance(module, torch.nn.Module):
        said = f"the class {module.__name__}" if isinstance(module, type) else type(module).__name__
        raise AntichainError(f"a model is a torch.nn.Module, not {said}")


def refuse(clauses, problems=(), operators=()):
    """Throws AntichainError where there is anything: clauses that are sentences themselves, and problems of
    translate.py."""
    if problems:
        each = ((said, f"{said} at node {call.name} ({call.where})", id(call)) for call, said in problems)
        unsupported = not_supported(grouped(each))
        clauses = [*clauses, f"{unsupported}; the operators are {', '.join(operators)}"]
    if clauses:
        raise AntichainError("; ".join(clauses))
