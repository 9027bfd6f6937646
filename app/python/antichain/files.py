"""Files that are written as a whole or not at all, so that what was there stays until all is written."""

import os
import pathlib
import tempfile

from antichain.error import AntichainError


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
