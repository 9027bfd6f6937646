"""Finds the program `antichain` and runs it."""

import os
import pathlib
import shutil
import subprocess
import sys

from antichain.error import AntichainError

_here = pathlib.Path(__file__).resolve()
# Within a wheel, and of a build in this repository.
_beside = [_here.parent / "bin/antichain", _here.parents[3] / "build/antichain"]


def _own():
    for path in _beside:
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    return None


def find():
    """Returns the path of the program: $ANTICHAIN, else beside the package, else on the PATH."""
    named = os.environ.get("ANTICHAIN")
    if named:
        return named
    found = _own() or shutil.which("antichain")
    if not found:
        raise AntichainError(
            "the program antichain is not found; name it by the environment's ANTICHAIN, or put it on "
            "the PATH"
        )
    return found


def flags(options):
    """Returns options as the program's flags: max_states=9 is --max-states 9, at_most=True is --at-most."""
    said = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        said.append("--" + name.replace("_", "-"))
        if value is not True:
            said.append(",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value))
    return said


def run(command, **options):
    """Runs `antichain COMMAND --option value …` and returns what it printed. Throws AntichainError with
    what the program says is wrong."""
    try:
        done = subprocess.run([find(), command, *flags(options)], capture_output=True, text=True)
    except OSError as problem:
        raise AntichainError(f"the program can't be started: {problem}") from problem
    if done.returncode:
        said = done.stderr.strip().removeprefix("antichain: ")
        raise AntichainError(said or f"antichain {command} ended with code {done.returncode}")
    return done.stdout


def main():
    """Becomes the program: this is the command `antichain` of a wheel."""
    path = _own()
    if path is None:
        sys.exit("antichain: this package has no program in it; build it with CMake, or install the wheel")
    os.execv(path, ["antichain", *sys.argv[1:]])
