"""Antichain in Python: models from PyTorch, and plans and simulations for a notebook.

  antichain.from_torch(module, example_inputs)   writes a PyTorch model as a folder that the program reads

PyTorch is needed by the functions that take a module, and by nothing else. The package lies in app/, beside the
program's commands, because it is a second way to use the program, and may know of every other folder.
"""
from antichain.error import AntichainError

__all__ = ["AntichainError", "from_torch"]


def from_torch(module, example_inputs, **options):
    from antichain.pytorch.from_torch import from_torch as write
    return write(module, example_inputs, **options)
