"""Finds the program `antichain` and runs it."""

import contextlib
import json
import os
import pathlib
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading

from antichain.error import AntichainError

NAME = "antichain: "
WARNING = "antichain: warning: "
WITH_RESULTS = ("train", "evaluate", "generate", "check", "doctor")  # whose JSON is what a user asked for

_here = pathlib.Path(__file__).resolve()
# Within a wheel, of a build in this repository, and of an installation.
_beside = [
    _here.parent / "bin/antichain",
    _here.parents[3] / "build/antichain",
    _here.parents[4] / "bin/antichain",
]


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


class Output(str):
    """What a command printed on standard output. `warnings` are the sentences that it warned with, and
    `results` is what its JSON file says: of train, evaluate, generate, check and doctor always, else with
    json=FILE; or None."""

    warnings = ()
    results = None


def _words(name, value):
    """Returns an option's value as the command line has it."""
    if hasattr(value, "tolist"):  # numpy's and torch's numbers and arrays
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        parts = [_words(name, part) for part in value]
        if parts and all(parts) and not any("," in part for part in parts):
            return ",".join(parts)
        wrong = "has no parts, or one that is empty or has a comma in it"
        raise AntichainError(f"the list {name} {wrong}: {value!r}")
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return repr(value)
    kinds = "a number, a text, a path, True, False, or a list"
    raise AntichainError(f"the option {name} takes {kinds}, not {type(value).__name__}")


def _opposite(command, flag):
    """Returns the flag by which a command takes `flag` as false: of nesterov, no-nesterov."""
    opposite = flag.removeprefix("no-") if flag.startswith("no-") else f"no-{flag}"
    said, _ = call([find(), *command, "--help-all"])
    if not re.search(rf"--{re.escape(opposite)}(?![\w-])", "".join(said)):
        raise AntichainError(
            f"{flag.replace('-', '_')}=False has no meaning, because antichain {' '.join(command)} has no "
            f"option --{opposite}; leave it out, or give None"
        )
    return opposite


def flags(command, options):
    """Returns options as the program's flags: max_states=9 is --max-states=9, at_most=True is --at-most,
    flip=False is --no-flip, and cuts=["a", "b"] is --cuts=a,b. None is an option that is not given. A name of
    Python's has an underscore behind it: for_="torch"."""
    said = []
    for name, value in options.items():
        flag = name.rstrip("_").replace("_", "-")
        if hasattr(value, "tolist"):
            value = value.tolist()
        if isinstance(value, bool):
            said.append("--" + (flag if value else _opposite(command, flag)))
        elif value is not None:
            said.append(f"--{flag}={_words(name, value)}")
    return said


def print_line(line, error):
    """Prints a line of the program where Python prints, which may be a notebook."""
    print(line, end="", file=sys.stderr if error else sys.stdout, flush=True)


def print_warning(line, error):
    if error and line.startswith(WARNING):
        print_line(line, error)


def _lines(process):
    """Yields the lines of both streams of a process as they come, and whether each is of standard error."""
    lines = queue.SimpleQueue()

    def read(stream, error):
        for line in stream:
            lines.put((line, error))
        lines.put(None)

    streams = (process.stdout, False), (process.stderr, True)
    for stream in streams:
        threading.Thread(target=read, args=stream, daemon=True).start()
    for _ in streams:
        yield from iter(lines.get, None)


def sentence(said):
    """Returns the sentence that a command ended with: the last one on standard error that is no warning."""
    begins = [i for i, line in enumerate(said) if line.startswith(NAME) and not line.startswith(WARNING)]
    return "".join(said[begins[-1] :] if begins else said).strip().removeprefix(NAME)


def call(words, listener=lambda line, error: None):
    """Runs words[0], and returns the lines that it wrote to both streams. The rest is as `run` says."""
    lines = {False: [], True: []}
    try:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(words, **pipes, encoding="utf-8", errors="replace")
    except (OSError, TypeError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise AntichainError(f"the program {words[0]} can't be started: {why}") from problem
    with process:
        try:
            for line, error in _lines(process):
                lines[error].append(line)
                listener(line, error)
        except BaseException:
            process.terminate()
            raise
    if process.returncode:
        ended = f"{words[0]} {words[1]} ended with code {process.returncode}"
        raise AntichainError(sentence(lines[True]) or ended, process.returncode)
    return lines[False], lines[True]


def run(command, *arguments, listener=print_line, **options):
    """Runs `antichain COMMAND ARGUMENT … --option=value …` and returns what it printed, an Output.

    command    "train", or two words: "data pack"
    arguments  what has no name, such as the two folders of "compare"
    listener   called with each line as it comes, and whether it is of standard error (progress and warnings)
               [printed to sys.stdout and sys.stderr]
    options    numbers, texts, paths, True, False, or lists; None is not given (see flags)

    Throws AntichainError with what the program says is wrong; its `code` is the exit code. Where Python is
    interrupted, or the listener throws, the program gets SIGTERM, on which training saves a checkpoint.
    """
    command = command.split() if isinstance(command, str) else None
    if not command:
        raise AntichainError('the command is a text, such as "train" or "data pack"')
    held, options = None, {name: value for name, value in options.items() if value is not None}
    if command[0] in WITH_RESULTS and not {"json", "config", "results"}.intersection(options):
        held = tempfile.TemporaryDirectory()
        options["json"] = os.path.join(held.name, "results.json")
    with held or contextlib.nullcontext():
        words = [*command, *(_words("argument", a) for a in arguments), *flags(command, options)]
        printed, said = call([find(), *words], listener)
        output = Output("".join(printed))
        output.warnings = [line.removeprefix(WARNING).strip() for line in said if line.startswith(WARNING)]
        output.results = _results(options, output)
    return output


def _results(options, output):
    """Returns what the JSON file says that a command wrote, or None."""
    file = options.get("json")
    if file is None and "results" in options:
        file = os.path.join(options["results"], "summary.json")
    if file is None:
        return None
    try:
        return json.loads(output if file == "-" else pathlib.Path(file).read_text())
    except (OSError, ValueError):
        return None


def main():
    """Becomes the program: this is the command `antichain` of a wheel."""
    path = _own()
    if path is None:
        sys.exit("antichain: this package has no program in it; build it with CMake, or install the wheel")
    os.execv(path, ["antichain", *sys.argv[1:]])
