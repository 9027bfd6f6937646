"""Writes the weights of a file of torch.save as safetensors, which the program reads. Nothing but tensors and
plain values is taken from the file, so no code of it runs."""

import os

import torch

from antichain import safetensors
from antichain.command import USAGE, Parser
from antichain.error import AntichainError
from antichain.files import written_whole
from antichain.pytorch.capture import said
from antichain.pytorch.from_torch import stored_numbers
from antichain.pytorch.module_state import in_list


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
    except OSError as problem:
        raise AntichainError(f"can't read {file}: {problem.strerror or problem}") from problem
    except Exception as problem:
        raise AntichainError(
            f"{file} can't be read as weights of torch.save: {said(problem)} (save model.state_dict(), and "
            "not the model)"
        ) from problem
    state, others = state_in(content, file)
    arrays = {name: stored_numbers(name, tensor) for name, tensor in state.items()}
    if os.path.exists(out) and not safetensors.begins(out):
        why = f"{out} is there already and would be replaced, but it has no safetensors"
        raise AntichainError(f"{why}: name another file, or move that one", USAGE)
    with written_whole(out) as whole:
        safetensors.write(whole, arrays)
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
