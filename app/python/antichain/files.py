"""How files are written: as a whole or not at all, so that what was there stays until all is written; and in
JSON with a line an entry, so that two can be compared."""

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


def write_whole(file, content):
    """Writes bytes. Throws AntichainError."""
    try:
        with tempfile.TemporaryDirectory(dir=pathlib.Path(file).parent) as held:
            whole = pathlib.Path(held) / "whole"
            whole.write_bytes(content)
            os.replace(whole, file)
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise AntichainError(f"can't write {file}: {why}", 3) from problem
