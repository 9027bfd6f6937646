"""Records what a module computes by torch.export, as torch 2.6 and later have it.

The exported program calls operators of ATen. Parameters and buffers are inputs of the program.
"""

import contextlib
import io
import logging
import os
import re
import warnings

import torch

from antichain.error import AntichainError
from antichain.pytorch.autograd_functions import NO_GRADIENT, functions_entered
from antichain.pytorch.calls import Kind, Region, Tensor, Where, is_users, line_here


def _where(node):
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path, kind = stack[-1] if stack else ("", "")
    kind = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
    lines = [
        f"{os.path.basename(file)}:{line}"
        for file, line in re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
        if is_users(file)
    ]
    return Where(path, kind.split(".")[-1], kind.startswith("torch.nn"), lines[-1] if lines else "")


def _region(node, program):
    """Returns a part of the program that runs under a context of its own as a Region, and what it is
    given."""
    name = str(node.target)
    at = [i for i, a in enumerate(node.args) if getattr(a, "op", "") == "get_attr"]
    parts = [getattr(program.graph_module, node.args[i].target) for i in at]
    places = (_where(n) for part in parts for n in part.graph.nodes if n.meta.get("stack_trace"))
    where = next(places, _where(node))
    if "set_grad_enabled" in name:
        said = f"no gradient passes through a part of the model ({where}), but {NO_GRADIENT}"
    elif "autocast" in name:
        why = "but a module is taken in float32"
        said = f"a part of the model computes by autocast ({where}), {why}"
    else:
        raise AntichainError(f"'{name}' ({where}) can't be recorded")
    return Region(parts[0], said), node.args[at[0] + 1 :]


def _enter_what_is_off(program):
    """Puts the parts of a program under an autocast that is off where they are called."""
    graph = program.graph_module.graph
    found = True
    while found:
        found = [n for n in graph.nodes if "autocast" in str(n.target) and n.args[2] is False]
        for node in found:
            part = getattr(program.graph_module, node.args[4].target).graph
            given = dict(zip((n for n in part.nodes if n.op == "placeholder"), node.args[5:]))
            with graph.inserting_before(node):
                made = graph.graph_copy(part, given)
            for user in [*node.users] if isinstance(made, (tuple, list)) else []:
                user.replace_all_uses_with(made[user.args[1]])
                graph.erase_node(user)
            if isinstance(made, torch.fx.Node):
                node.replace_all_uses_with(made)
            graph.erase_node(node)


def _check_precision(node, value):
    if value.dtype in (torch.float16, torch.bfloat16):
        raise AntichainError(
            f"'{node.target.__name__}' computes in {value.dtype} ({node.meta['where']}), but a module is "
            "taken in float32"
        )


def capture(module, examples):
    """Returns a graph and the tensors that it uses, as capture_fx.capture does."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # what goes wrong is in the exception, too
    try:
        with (
            contextlib.redirect_stderr(io.StringIO()),
            warnings.catch_warnings(),
            functions_entered(lambda: line_here(capture)),
        ):
            warnings.simplefilter("ignore")
            # The strict way gives modules other names, and refuses the ninth model of a class.
            program = torch.export.export(module, tuple(examples.values()), strict=False)
    finally:
        logging.disable(before)
    _enter_what_is_off(program)
    signature = program.graph_signature
    of_kind = {
        Kind.parameter: signature.inputs_to_parameters,
        Kind.buffer: signature.inputs_to_buffers,
        Kind.constant: signature.inputs_to_lifted_tensor_constants,
    }
    named = {node: (kind, name) for kind, names in of_kind.items() for node, name in names.items()}
    every = {"remove_duplicate": False}
    own = [*module.named_buffers(**every), *module.named_parameters(**every)]
    # Modules may share a tensor, which then has the first of its names.
    first = {id(tensor): name for name, tensor in reversed(own)}
    tensors = {}
    inputs = iter(examples)
    results = set(signature.user_outputs)
    for node in program.graph.nodes:
        value = node.meta.get("val")
        shape = tuple(value.shape) if isinstance(value, torch.Tensor) else None
        if node.op == "placeholder":
            kind, name = named.get(node.name) or (Kind.input, next(inputs))
            if kind is not Kind.input:
                tensor = {**program.constants, **dict(own)}[name]
                name = first.get(id(tensor), name)
                tensors[name] = tensor
            node.meta["tensor"] = Tensor(name, kind, shape)
            node.meta["dtype"] = getattr(value, "dtype", None)
        elif node.op == "output":
            # Buffers that training changes come before what the model returns.
            node.args = (tuple(n for n in node.args[0] if getattr(n, "name", None) in results),)
        else:
            node.meta["where"] = _where(node)
            if isinstance(node.target, torch._ops.HigherOrderOperator):
                node.meta["region"] = _region(node, program)
            if shape is not None:
                node.meta["shape"] = shape
                node.meta["dtype"] = value.dtype
                _check_precision(node, value)
    return program.graph, tensors
