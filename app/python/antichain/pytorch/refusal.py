"""One sentence about everything of a model that is not supported, so that a user learns it at once. Equal
things are counted; what together makes attention is called so."""

import collections
import math
import re

import torch

from antichain.error import AntichainError
from antichain.pytorch.calls import Kind, Tensor, references

MOST = 12  # things in a sentence
PRODUCTS = {"matmul", "bmm", "baddbmm", "einsum", "mm"}
ATTENTION = {"multi_head_attention_forward", "scaled_dot_product_attention", "_native_multi_head_attention"}


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


def _of_computed(call):
    return call.key in PRODUCTS and not any(
        isinstance(r, Tensor) and r.kind is Kind.parameter for r in references(call)
    )


def attending(calls):
    """Returns the paths of modules that compute attention: softmax between products of computed matrices, or
    one function for all of it."""
    keys = collections.defaultdict(set)
    for call in calls:
        keys[call.where.module].add("product" if _of_computed(call) else call.key)
        if call.where.kind == "MultiheadAttention":
            keys[call.where.module].update(ATTENTION)
    return {path for path, found in keys.items() if found & ATTENTION or {"product", "softmax"} <= found}


def grouped(problems, calls):
    """Returns a clause for each kind of thing, in the order in which they come."""
    attention = attending(calls)
    first, places = {}, collections.defaultdict(set)
    for problem in problems:
        where = problem.call.where
        if where.module in attention:
            kind, place = "attention", where.module
            said = f"attention in {where.module or 'the model'} ({where.line or where.kind})"
        else:
            kind, place = re.sub(r"\d+", "0", problem.said), id(problem.call)
            said = f"{problem.said} at node {problem.call.name} ({where})"
        first.setdefault(kind, said)
        places[kind].add(place)
    more = {kind: len(there) - 1 for kind, there in places.items()}
    return [said + (f" and {more[kind]} more" if more[kind] else "") for kind, said in first.items()]


def refuse(clauses, problems=(), calls=(), operators=()):
    """Throws AntichainError where there is anything: clauses that are sentences themselves, and problems of
    translate.py."""
    unsupported = grouped(problems, calls)
    if unsupported:
        shown = unsupported[:MOST]
        if len(unsupported) > MOST:
            shown.append(f"{len(unsupported) - MOST} things more")
        verb = "is" if len(shown) == 1 and " more" not in shown[0][-12:] else "are"
        clauses = [
            *clauses,
            f"{'; '.join(shown)} {verb} not supported; the operators are {', '.join(operators)}",
        ]
    if clauses:
        raise AntichainError("; ".join(clauses))
