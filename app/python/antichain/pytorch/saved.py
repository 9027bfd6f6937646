"""Writes the weights of a file of torch.save as safetensors, which the program reads. Nothing but tensors and
plain values is taken from the file, so no code of it runs."""

import argparse
import os
import pathlib
import tempfile

import torch

from antichain import safetensors
from antichain.error import AntichainError
from antichain.pytorch.capture import said
from antichain.pytorch.from_torch import stored_numbers
from antichain.pytorch.module_state import in_list

USAGE = 2  # the program's exit code for a wrong command line


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise AntichainError(f"{message}: see {self.prog} --help", USAGE)


def is_state(value):
    return isinstance(value, dict) and value and all(isinstance(t, torch.Tensor) for t in value.values())


def state_in(content, file):
    """Returns the state_dict that a file has, alone or beside other things, and the names of these."""
    if is_state(content):
        return content, []
    if not isinstance(content, dict):
        raise AntichainError(f"{file} has no state_dict: it has a {type(content).__name__}")
    states = [name for name, value in content.items() if is_state(value)]
    if len(states) != 1:
        found = f"it has {in_list(map(str, states))}" if states else f"it has {in_list(map(str, content))}"
        raise AntichainError(f"{file} has {len(states) or 'no'} state_dict{'s' * (len(states) > 1)}: {found}")
    return content[states[0]], [str(name) for name in content if name != states[0]]


def convert(file, out):
    """Writes the file's state_dict to `out`, in float32. Returns how many tensors it has, and the names of
    what else the file has. Throws AntichainError."""
    try:
        content = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as problem:
        raise AntichainError(
            f"{file} can't be read as weights of torch.save: {said(problem)} (save model.state_dict(), and "
            "not the model)"
        ) from problem
    state, others = state_in(content, file)
    arrays = {name: stored_numbers(name, tensor) for name, tensor in state.items()}
    try:
        with tempfile.TemporaryDirectory(dir=pathlib.Path(out).absolute().parent) as held:
            safetensors.write(pathlib.Path(held) / "whole", arrays)
            os.replace(pathlib.Path(held) / "whole", out)
    except OSError as problem:
        raise AntichainError(f"can't write {out}: {problem.strerror}") from problem
    return len(arrays), others


def main():
    parser = Parser(prog="python3 -m antichain.pytorch", description="Weights from PyTorch's files.")
    commands = parser.add_subparsers(dest="command", required=True)
    weights = commands.add_parser("weights", help="write the state_dict of a file of torch.save")
    weights.add_argument("file", metavar="IN.pt")
    weights.add_argument("out", metavar="OUT.safetensors")
    given = parser.parse_args()
    count, others = convert(given.file, given.out)
    left = f"; left out: {in_list(others)}" if others else ""
    print(f"{given.out}: {count} tensors of {given.file}{left}")
