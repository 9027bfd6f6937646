"""Captures a module, by whichever way this version of PyTorch has, and makes sure that the record is true: it
is run again, with the same random numbers, and has to give what the module gives."""

import contextlib
import copy
import os
import traceback

import torch

from antichain.error import AntichainError
from antichain.pytorch import capture_export, capture_fx
from antichain.pytorch.attention import fused
from antichain.pytorch.calls import DECIDES, SAME_FOR_ALL, Call, Region, is_users, map_leaves, replay
from antichain.pytorch.fold import fold
from antichain.pytorch.module_state import in_list, named
from antichain.pytorch.multi_head import attend_simply
from antichain.pytorch.normalise import flat, normalise
from antichain.pytorch.recurrent import step_by_step
from antichain.pytorch.spectral import stand_in

# A replay makes the same calls, but for those in place and the copies between them; so it differs by the
# rounding of other kernels at most.
TOLERANCE = 1e-4


def said(problem):
    """Returns what an exception of PyTorch or of the user's code says, in one line."""
    if "DataDependent" in type(problem).__name__:
        return f"{DECIDES}, but {SAME_FOR_ALL}"
    return f"{type(problem).__name__}: {(str(problem).strip().splitlines() or [''])[0]}"


def users_line(problem):
    """Returns " at net.py:12", the last line of the user's code that led to an error."""
    lines = [
        f" at {os.path.basename(frame.filename)}:{frame.lineno}"
        for frame in traceback.extract_tb(problem.__traceback__)
        if is_users(frame.filename)
    ]
    return lines[-1] if lines else ""


@contextlib.contextmanager
def told(what, where=lambda problem: ""):
    """Makes a sentence of what PyTorch or the user's code throws."""
    try:
        yield
    except AntichainError:
        raise
    except Exception as problem:
        raise AntichainError(f"{what}{where(problem)}: {said(problem)}") from problem


def copied(module, training=True):
    """Returns a copy of a module on the CPU, in float32, and in training or in evaluation mode. In training
    mode, parts of a model in training mode that are in evaluation mode stay so."""
    with told("the module can't be copied to the CPU"):
        # What a hook left behind, such as the weight that weight_norm computed, can't be copied as it is.
        values = (value for m in module.modules() for value in vars(m).values())
        left = [t for t in values if isinstance(t, torch.Tensor) and t.grad_fn]
        module = copy.deepcopy(module, {id(t): t.detach().clone() for t in left}).cpu().float()
        kept = [m for m in module.modules() if training and module.training and not m.training]
        module.train(training)
    for m in kept:
        m.training = False
    for m in module.modules():
        if getattr(m, "_compiled_call_impl", None):  # by module.compile()
            m._compiled_call_impl = None
    stand_in(module)
    attend_simply(module)
    step_by_step(module)
    return module


def capture(module, examples, training=True):
    """Returns the Captured of a module in training or evaluation mode, and the copy of the module that it is
    of. `examples` are the inputs, by name."""
    module = copied(module, training)
    by_export = hasattr(torch, "export") and tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 6)
    way, name = (capture_export, "torch.export") if by_export else (capture_fx, "torch.fx")
    with torch.random.fork_rng(devices=[]), told(f"{name} can't record the model", users_line):
        graph, tensors = way.capture(module, {name: x.clone() for name, x in examples.items()})
        captured = normalise(graph, tensors, f"{name} of torch {torch.__version__}")
        captured = fused(fold(captured, set(module.state_dict())))
    for call in captured.calls:
        if isinstance(call.function, Region):
            raise AntichainError(call.function.refusal)
    if not captured.outputs:
        raise AntichainError("the model returns no tensor")
    return captured, module


def counters(module):
    """Returns the numbers and texts that a module holds, and where."""

    def plain(leaf):
        return leaf if isinstance(leaf, (bool, int, float, complex, str)) else None

    return {
        f"{key} of {named(name, m)}": [map_leaves(plain, value)]
        for name, m in module.named_modules()
        for key, value in vars(m).items()
    }


def check(module, captured, examples):
    """Throws AntichainError unless the record gives what the module gives, and gives each time."""
    before = counters(module)
    start = [buffer.clone() for buffer in module.buffers()]
    with torch.random.fork_rng(devices=[]), told("the model can't run again", users_line):
        torch.manual_seed(0)
        expected = flat(module(*(x.clone() for x in examples.values())))
        for buffer, at_start in zip(module.buffers(), start):
            buffer.copy_(at_start)
        torch.manual_seed(0)
        again = {
            id(call): value
            for call, value in replay(captured.calls, captured.tensors, examples)
            if any(call is output for output in captured.outputs)
        }
    changed = [where for where, value in counters(module).items() if before.get(where, value) != value]
    if changed:
        raise AntichainError(
            f"forward changes {in_list(changed)} each time, but a model has to compute the same each time "
            "(keep such a count outside of the model)"
        )
    for output, tensor in zip(captured.outputs, expected):
        if isinstance(output, Call) and not torch.allclose(
            again[id(output)], tensor.to(again[id(output)]), TOLERANCE, TOLERANCE, equal_nan=True
        ):
            raise AntichainError(
                f"what was recorded of the model gives other numbers than the model itself, by up to "
                f"{(again[id(output)] - tensor).abs().max():.2g}; it may change a tensor in place through a "
                "view, draw random numbers otherwise than by dropout, or have a hook of the whole model"
            )
