#!/usr/bin/env python3
"""Tries every classification model of torchvision: antichain.from_torch writes it as a folder, and with
--program, `antichain check` compares those of up to 60 million parameters. Writes a table;
docs/torchvision.csv is one.

  tests/scripts/torchvision_models.py [--program build/antichain] [--out docs/torchvision.csv] [MODEL …]

Models are not trained, and a batch has two images. An image has 64 x 64 pixels, so that the last batch norms
see more than one, or as few as the model takes, where that is more. Some models increase
roundings so much that `check` can't compare all tensors, and the table says how many. A line that the table
has and that is not tried now stays.
"""

import argparse
import csv
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings

root = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(root / "app/python"))
try:
    import torch
    import torchvision
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)
import antichain  # noqa: E402

COLUMNS = [
    "model",
    "parameters",
    "image",
    "nodes",
    "seconds",
    "check",
    "not compared",
    "not translated because",
]
# Of Inception-v3, the auxiliary head needs 299 x 299; it is left out.
OPTIONS = {"googlenet": {"init_weights": False}, "inception_v3": {"init_weights": False, "aux_logits": False}}
# A vision transformer takes images of one size, here of two by two patches.
VIT = {f"vit_{name}": 2 * int(name[2:]) for name in ("b_16", "b_32", "l_16", "l_32", "h_14")}
SIZES = {"inception_v3": 128, "maxvit_t": 224, **VIT}
MOST_PARAMETERS = 60e6  # of the models that are compared


def names():
    return [name for name in torchvision.models.list_models(module=torchvision.models) if "raft" not in name]


def attempt(name, folder, program):
    size = SIZES.get(name, 64)
    torch.manual_seed(0)
    module = torchvision.models.get_model(
        name, weights=None, **OPTIONS.get(name, {}), **({"image_size": size} if name in VIT else {})
    )
    parameters = sum(p.numel() for p in module.parameters())
    compare = program and parameters <= MOST_PARAMETERS
    line = {"model": name, "parameters": parameters, "image": size}
    begin = time.monotonic()
    try:
        antichain.from_torch(module, torch.randn(2, 3, size, size), folder=folder, record=bool(compare))
    except antichain.AntichainError as problem:
        reason = str(problem).split("; the operators are")[0]
        return {**line, "not translated because": reason}
    line["seconds"] = f"{time.monotonic() - begin:.1f}"
    line["nodes"] = len(re.findall('"op":', (pathlib.Path(folder) / "graph.json").read_text()))
    if compare:
        run = subprocess.run([program, "check", "--graph", folder], capture_output=True, text=True)
        said = (run.stdout + run.stderr).strip().splitlines() or [""]
        line["check"] = "passed" if run.returncode == 0 else said[-1].split(":")[1].strip()
        beyond = re.search(r"\n\n([^\n]*?) can't be compared", run.stdout)
        line["not compared"] = beyond[1] if beyond else ""
    return line


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--program")
    parser.add_argument("--out", default=root / "docs/torchvision.csv", type=pathlib.Path)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    lines = {}
    if options.out.exists():
        with options.out.open() as table:
            lines = {line["model"]: line for line in csv.DictReader(table)}
    for name in options.models or names():
        folder = tempfile.mkdtemp()
        try:
            lines[name] = attempt(name, folder, options.program)
        finally:
            shutil.rmtree(folder)
        print(", ".join(str(lines[name].get(column, "")) for column in COLUMNS), flush=True)
        with options.out.open("w", newline="") as table:
            writer = csv.DictWriter(table, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines[name] for name in sorted(lines))
    translated = sum(not line.get("not translated because") for line in lines.values())
    print(f"{translated} of {len(lines)} models are translated")


if __name__ == "__main__":
    main()
