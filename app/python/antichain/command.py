"""Starts a command of the package (python3 -m antichain.onnx, python3 -m antichain.pytorch)."""

import argparse
import importlib
import sys

from antichain.error import AntichainError

USAGE = 2  # the program's exit code for a wrong command line


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise AntichainError(f"{message}: see {self.prog} --help", USAGE)


def start(module, packages, what, also=""):
    """Calls main() of a module, and ends the process with an AntichainError's sentence and code. `what`
    begins the sentence where one of the packages that the module needs is missing, and `also` ends it."""
    sys.stdout.reconfigure(errors="backslashreplace")  # names of files may be no text
    try:
        try:
            main = importlib.import_module(module).main
        except ModuleNotFoundError as problem:
            if problem.name not in packages:
                raise
            raise AntichainError(
                f"{what} by the Python package {problem.name}, which is not installed: "
                f"pip install {problem.name}{also.format(problem.name)}"
            ) from problem
        main()
    except AntichainError as problem:
        print(f"antichain: {problem}", file=sys.stderr)
        sys.exit(problem.code or 3)
