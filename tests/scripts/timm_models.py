#!/usr/bin/env python3
"""Tries timm 1.0.9: the first model by timm.list_models() of each of its first 40 families, which are the
files of timm/models. antichain.from_torch reads them as they are made (pretrained=False), on two images of
their usual size, and this script writes a table; docs/timm.csv is one. Needs timm and torch 2.6 or later.

  tests/scripts/timm_models.py [--trained 20] [--out docs/timm.csv] [FAMILY …]

Those of up to so many million parameters are written by from_torch, which trains them beside the user's
module; of the others the network is read, and nothing is computed with it. A line that the table has and that
is not tried now stays.
"""

import argparse
import csv
import pathlib
import sys
import tempfile
import warnings

root = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(root / "app/python"))
try:
    import timm
    import torch
    from timm.models import _registry
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)
import antichain  # noqa: E402
from antichain.pytorch.from_torch import read, pick_logits  # noqa: E402
from antichain.pytorch.module_state import what_is_not_done  # noqa: E402

FAMILIES = 40
COLUMNS = ["family", "model", "parameters", "image", "nodes", "trained beside it", "not translated because"]


def first_models():
    """Returns the first model of each family, by the family's name."""
    first = {}
    for model in timm.list_models():
        first.setdefault(_registry._model_to_module[model], model)
    return dict([*first.items()][:FAMILIES])


def attempt(family, model, most):
    torch.manual_seed(0)
    module = timm.create_model(model, pretrained=False)
    size = module.pretrained_cfg["input_size"]
    parameters = sum(p.numel() for p in module.parameters())
    line = {"family": family, "model": model, "parameters": parameters, "image": size[-1]}
    images = torch.randn(2, *size)
    try:
        if parameters > most:
            pick, clauses = pick_logits("cross_entropy", 0), what_is_not_done(module)
            t = read(module, {"images": images}, pick, ("images", "labels", "loss"), clauses)[2]
            return {**line, "nodes": len(t.nodes) + 1, "trained beside it": "no"}
        with tempfile.TemporaryDirectory() as folder:
            net = pathlib.Path(folder, "net.antichain")
            antichain.from_torch(module, images, folder=net, record=False)
            nodes = (net / "graph.json").read_text().count('"op":')
        return {**line, "nodes": nodes, "trained beside it": "yes"}
    except antichain.AntichainError as problem:
        return {**line, "not translated because": str(problem).split("; the operators are")[0]}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("families", nargs="*", metavar="FAMILY")
    parser.add_argument("--trained", type=float, default=20, help="million parameters")
    parser.add_argument("--out", default=root / "docs/timm.csv", type=pathlib.Path)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    first, lines = first_models(), {}
    if options.out.exists():
        with options.out.open() as table:
            lines = {line["family"]: line for line in csv.DictReader(table)}
    for family in options.families or first:
        lines[family] = attempt(family, first[family], options.trained * 1e6)
        print(", ".join(str(lines[family].get(column, "")) for column in COLUMNS), flush=True)
        with options.out.open("w", newline="") as table:
            writer = csv.DictWriter(table, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines[family] for family in first if family in lines)
    translated = sum(not line.get("not translated because") for line in lines.values())
    print(f"{translated} of {len(lines)} models are translated")


if __name__ == "__main__":
    main()
