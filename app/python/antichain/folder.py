"""Writes a folder NAME.antichain; docs/bring-your-model.md has the format."""

import json
import pathlib
import tempfile

from antichain import safetensors
from antichain.error import AntichainError
from antichain.files import json_of

GRAPH, WEIGHTS, CHECK = "graph.json", "weights.safetensors", "check.safetensors"
FORMAT = "antichain graph"


def graph_text(model, made_by, inputs, nodes, notes=(), frozen=()):
    """Returns the text of a graph.json, where each input, node, note of the state_dict, and name of a frozen
    parameter has a line."""
    head = {"format": FORMAT, "version": 1, "model": model, "made_by": made_by}
    rest = {name: lines for name, lines in (("state_dict", notes), ("frozen", frozen)) if lines}
    return json_of(head, inputs=inputs, nodes=nodes, **rest)


def _check_replaceable(folder):
    """Throws AntichainError where the folder has files and is no network's."""
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if not names or (folder / GRAPH).is_symlink():  # which is replaced, and what it leads to stays
        return
    try:
        ours = json.loads((folder / GRAPH).read_text())["format"] == FORMAT
    except (LookupError, OSError, TypeError, ValueError):
        ours = False
    if not ours:
        raise AntichainError(f"{folder} is a folder of something else (it has {names[0]}): name a new folder")


def write_folder(folder, graph, weights, check=None):
    """Writes the text of graph.json and arrays by their names. What the folder had stays until all is
    written. Returns the folder's path."""
    try:
        folder = pathlib.Path(folder)
        _check_replaceable(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as held:
            new = pathlib.Path(held)
            safetensors.write(new / WEIGHTS, weights)
            if check is not None:
                safetensors.write(new / CHECK, check)
            (new / GRAPH).write_text(graph)
            (folder / CHECK).unlink(missing_ok=True)
            for path in new.iterdir():
                path.replace(folder / path.name)
    except (OSError, TypeError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise AntichainError(f"the folder {str(folder)!r} can't be written: {why}") from problem
    return folder
