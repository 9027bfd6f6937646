"""What a module does with gradients by itself, while it is captured: activation checkpointing is entered, and
other functions with a backward of their own are refused."""

import contextlib

import torch
from torch.utils.checkpoint import CheckpointFunction

from antichain.error import AntichainError

NO_GRADIENT = (
    "a model is trained as a whole; leave out torch.no_grad(), detach() and the like (requires_grad_(False) "
    "and --freeze keep parts as they are)"
)


@contextlib.contextmanager
def functions_entered(here):
    """Makes every torch.autograd.Function do as said above. `here` returns the place in the user's code."""

    own = vars(torch.autograd.Function).get("apply")
    usual = own or vars(torch._C._FunctionBase)["apply"]

    def apply(function, *args, **kwargs):
        if function is CheckpointFunction:  # the function, whether to keep random states, and its inputs
            return args[0](*args[2:])
        is_ours = function.__name__.startswith("GeneratedBackwardFor_antichain")  # spectral.py
        if is_ours or function.__module__ == CheckpointFunction.__module__:
            return usual.__get__(None, function)(*args, **kwargs)
        raise AntichainError(
            f"the autograd Function {function.__name__} ({here()}) has a backward of its own, which can't "
            "be recorded"
        )

    torch.autograd.Function.apply = classmethod(apply)
    try:
        yield
    finally:
        if own is None:
            del torch.autograd.Function.apply
        else:
            torch.autograd.Function.apply = own
