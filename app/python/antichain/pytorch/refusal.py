"""One sentence about everything of a module that is not supported. What together makes attention is called
so."""

import collections
import math

import torch

from antichain.error import AntichainError
from antichain.pytorch.calls import Kind, Tensor, references
from antichain.refusal import grouped, not_supported

PRODUCTS = {"matmul", "bmm", "baddbmm", "einsum", "mm"}
ATTENTION = {
    "multi_head_attention_forward",
    "scaled_dot_product_attention",
    "_native_multi_head_attention",
}


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


def kinds(problems, calls):
    """Yields what antichain.refusal.grouped takes of each problem."""
    attention = attending(calls)
    for call, said in problems:
        where = call.where
        if where.module in attention:
            said = f"attention in {where.module or 'the model'} ({where.line or where.kind})"
            yield "attention", said, where.module
        else:
            yield said, f"{said} at node {call.name} ({where})", id(call)


def refuse(clauses, problems=(), calls=(), operators=()):
    """Throws AntichainError where there is anything: clauses that are sentences themselves, and problems of
    translate.py."""
    if problems:
        unsupported = not_supported(grouped(kinds(problems, calls)))
        clauses = [*clauses, f"{unsupported}; the operators are {', '.join(operators)}"]
    if clauses:
        raise AntichainError("; ".join(clauses))
