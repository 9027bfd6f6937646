"""Writes a folder NAME.antichain; docs/bring-your-model.md has the format."""

import json
import pathlib

from antichain import safetensors
from antichain.error import AntichainError

GRAPH, WEIGHTS, CHECK = "graph.json", "weights.safetensors", "check.safetensors"


def graph_text(model, made_by, inputs, nodes, notes=()):
    """Returns the text of a graph.json, where each input, node, and note of the state_dict has a line."""

    def listed(entries):
        return "[\n" + ",\n".join("  " + json.dumps(entry) for entry in entries) + "\n]"

    head = {"format": "antichain graph", "version": 1, "model": model, "made_by": made_by}
    lists = {"inputs": inputs, "nodes": nodes, **({"state_dict": notes} if notes else {})}
    return (
        json.dumps(head)[:-1]
        + "".join(f',\n"{name}": {listed(all_)}' for name, all_ in lists.items())
        + "}\n"
    )


def write_folder(folder, graph, weights, check=None):
    """Writes the text of graph.json and arrays by their names. Returns the folder's path."""
    try:
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name in (GRAPH, WEIGHTS, CHECK):
            (folder / name).unlink(missing_ok=True)  # a symbolic link is not followed
        (folder / GRAPH).write_text(graph)
        safetensors.write(folder / WEIGHTS, weights)
        if check is not None:
            safetensors.write(folder / CHECK, check)
    except (OSError, TypeError, ValueError) as problem:
        raise AntichainError(
            f"the folder {str(folder)!r} can't be written: {type(problem).__name__}: {problem}"
        ) from problem
    return folder
