"""What a module is called with, and the names that its inputs have: one tensor, several by position, or what
the module takes by keywords. Numbers, texts and None among them stay as they are."""

import copy
import inspect

import torch

from antichain.error import AntichainError
from antichain.pytorch.calls import map_leaves, tensors_in
from antichain.pytorch.capture import told
from antichain.pytorch.names import readable
from antichain.translation import Names

MOST_WHOLE = 2**31  # that int32 does not have
PRE_TRAINED = "transformers.modeling_utils.PreTrainedModel"


def example_call(example_inputs):
    """Returns what a module is called with: a tuple, and a dictionary of keywords."""
    if isinstance(example_inputs, dict):
        args, keywords = (), example_inputs
    else:
        args, keywords = example_inputs, {}
    args = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    tensors = tensors_in((args, keywords))
    if not tensors or not tensors[0].dim() or not len(tensors[0]) or any(t.is_complex() for t in tensors):
        raise AntichainError(
            "example_inputs is a tensor, a tuple of what the module takes, or a dictionary of that by "
            "keywords; its first tensor begins with the axis of the samples, one at least, and none is "
            "complex; but it has "
            f"{[(tuple(t.shape), t.dtype) for t in tensors] or type(example_inputs).__name__}"
        )

    def on_cpu(leaf):
        if not isinstance(leaf, torch.Tensor):
            return leaf
        leaf = leaf.detach().cpu()
        return leaf.float() if leaf.is_floating_point() else leaf.clone()

    with told("example_inputs can't be copied to the CPU"):
        return map_leaves(on_cpu, args), {key: map_leaves(on_cpu, value) for key, value in keywords.items()}


def tensors_by_parameter(module, args, keywords):
    """Yields the tensors that a module is called with, each with the parameter of forward that it is of."""
    takes = [*inspect.signature(module.forward).parameters]
    takes += [f"{i}" for i in range(len(takes), len(args))]
    for key, value in [*zip(takes, args), *keywords.items()]:
        yield from ((key, tensor) for tensor in tensors_in(value))


def checked(name, tensor, samples):
    """Returns the tensor, which must be an input of a network with that many samples."""
    shape = f"the input {name} has the shape {tuple(tensor.shape)}"
    if not tensor.dim() or len(tensor) != samples:
        raise AntichainError(f"{shape}, but there are {samples} samples, which are the first axis of each")
    if not tensor.numel():
        raise AntichainError(f"{shape}, which has no numbers")
    if not tensor.isfinite().all():
        raise AntichainError(f"the input {name} has numbers that are not finite (NaN or infinity)")
    if not tensor.is_floating_point() and tensor.long().abs().max() >= MOST_WHOLE:
        raise AntichainError(f"the input {name} has whole numbers above 32 bits")
    return tensor


def network_inputs(module, args, keywords, taken):
    """Returns the tensors that a module is called with, by the names that a network's inputs get: those of
    forward's parameters; but one input is "images", or "tokens" where it has whole numbers. The names in
    `taken` are given to none."""
    found = [*tensors_by_parameter(module, args, keywords)]
    if len(found) == 1:
        found = [("images" if found[0][1].is_floating_point() else "tokens", found[0][1])]
    names, samples = Names(taken), len(found[0][1])
    return {names.unique(readable(key)): checked(key, tensor, samples) for key, tensor in found}


def taking_tensors(module, args, keywords):
    """Returns the module as one whose forward takes the tensors in `args` and `keywords` alone. Of what a
    model of Hugging Face's returns, it gives the logits."""
    kind = type(module)
    hugging_face = any(f"{k.__module__}.{k.__name__}" == PRE_TRAINED for k in kind.__mro__)
    if hugging_face and "use_cache" in inspect.signature(kind.forward).parameters:
        keywords = {"use_cache": False, **keywords}
    if not hugging_face and not keywords and all(isinstance(a, torch.Tensor) for a in args):
        return module

    def forward(self, *tensors):
        left = iter(tensors)
        given, named = map_leaves(
            lambda leaf: next(left) if isinstance(leaf, torch.Tensor) else leaf, (args, keywords)
        )
        output = kind.forward(self, *given, **named)
        return getattr(output, "logits", output) if hugging_face else output

    module = copy.copy(module)
    module.__class__ = type(kind.__name__, (kind,), {"forward": forward, "__module__": kind.__module__})
    return module
