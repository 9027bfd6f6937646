"""Reads and writes safetensors files as {name: tensor}, as far as antichain exports and reads them."""
import pathlib
import sys

import torch

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "app/python"))
from antichain import safetensors  # noqa: E402


def read(file):
    return {name: torch.from_numpy(array) for name, array in safetensors.read(file).items()}


def write(file, tensors):
    safetensors.write(file, {name: tensor.numpy() for name, tensor in tensors.items()})
