"""How files are written: as a whole or not at all, so that what was there stays until all is written; and in
JSON with a line an entry, so that two can be compared."""

import contextlib
import json
import os
import pathlib
import tempfile

from antichain.error import AntichainError


def json_of(head, **lists):
    """Returns a text of JSON with the fields of `head`, and lists with a line for each entry."""

    def listed(entries):
        return "[\n" + ",\n".join("  " + json.dumps(entry) for entry in entries) + "\n]"

    texts = (f',\n"{name}": {listed(entries)}' for name, entries in lists.items())
    return json.dumps(head)[:-1] + "".join(texts) + "}\n"


@contextlib.contextmanager
def written_whole(file):
    """Gives the path of a file to write, which becomes `file` when it is whole. Throws AntichainError."""
    try:
        with tempfile.TemporaryDirectory(dir=pathlib.Path(file).absolute().parent) as held:
            yield pathlib.Path(held) / "whole"
            os.replace(pathlib.Path(held) / "whole", file)
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise AntichainError(f"can't write {file}: {why}", 3) from problem


def write_whole(file, content):
    """Writes bytes. Throws AntichainError."""
    with written_whole(file) as whole:
        whole.write_bytes(content)
