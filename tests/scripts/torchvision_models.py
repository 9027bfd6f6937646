#!/usr/bin/env python3
"""Tries every classification model of torchvision: antichain.from_torch writes it as a folder. With
--program, `antichain check` compares those of up to 60 million parameters, and `antichain train` trains them
two steps on 1, 2 and 4 stages and compares the bits. The script writes a table; docs/torchvision.csv is one.

  tests/scripts/torchvision_models.py [--program build/antichain] [--only check|bits] [--trained 1000]
    [--out docs/torchvision.csv] [MODEL …]

Of models of more million parameters than --trained says, the network is read, and nothing is computed with
it: from_torch trains a model beside what it has read, which takes 50 bytes a parameter. The table has no
seconds for these. Others are not trained further, and a batch has two images, or four times two with 10
classes where bits are compared. An image has 64 x 64 pixels, so that the last batch norms see more than one,
or as few as the model takes, where that is more. A line that the table has and that is not tried now stays,
and so does a column.
"""

import argparse
import csv
import functools
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings

root = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(root / "app/python"), str(root / "tests/python")]
try:
    import torch
    import torchvision
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)
import antichain  # noqa: E402
import antichain.program  # noqa: E402
import antichain.safetensors  # noqa: E402
import graph_run  # noqa: E402
from antichain.pytorch.from_torch import pick_logits, read  # noqa: E402
from antichain.pytorch.module_state import what_is_not_done  # noqa: E402

COLUMNS = [
    "model",
    "parameters",
    "image",
    "nodes",
    "seconds",
    "check",
    "losses off by",
    "PyTorch's float32 off by",
    "graph in float64 off by",
    "not compared",
    "same bits",
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


def size_of(name):
    return SIZES.get(name, 64)


def module_of(name, **options):
    torch.manual_seed(0)
    image = {"image_size": size_of(name)} if name in VIT else {}
    return torchvision.models.get_model(name, weights=None, **OPTIONS.get(name, {}), **image, **options)


def write(name, module, folder, record):
    size = size_of(name)
    antichain.from_torch(module, torch.randn(2, 3, size, size), folder=folder, record=record)


def float32_error_of_losses(folder):
    """Returns how far PyTorch's own float32 is from its float64, as a share of the loss, in three steps."""
    recorded = antichain.safetensors.read(pathlib.Path(folder) / "check.safetensors")
    return max(abs(recorded["float32_error.losses"] / recorded["losses"]))


def attempt(name, folder, program, most):
    module = module_of(name)
    parameters = sum(p.numel() for p in module.parameters())
    compare = program and parameters <= MOST_PARAMETERS
    line = {"model": name, "parameters": parameters, "image": size_of(name)}
    begin = time.monotonic()
    try:
        if parameters > most:
            images = torch.randn(2, 3, size_of(name), size_of(name))
            pick, clauses = pick_logits("cross_entropy", 0), what_is_not_done(module)
            t = read(module, {"images": images}, pick, ("images", "labels", "loss"), clauses)[2]
            return {**line, "nodes": len(t.nodes) + 1}
        write(name, module, folder, record=bool(compare))
    except antichain.AntichainError as problem:
        reason = str(problem).split("; the operators are")[0]
        return {**line, "not translated because": reason}
    line["seconds"] = f"{time.monotonic() - begin:.1f}"
    line["nodes"] = len(re.findall('"op":', (pathlib.Path(folder) / "graph.json").read_text()))
    if compare:
        errors = pathlib.Path(folder) / "errors.json"
        run = subprocess.run(
            [program, "check", "--graph", folder, "--json", errors], capture_output=True, text=True
        )
        if errors.exists():
            line["losses off by"] = f"{max(json.loads(errors.read_text())['losses'].values()):.0e}"
        line["PyTorch's float32 off by"] = f"{float32_error_of_losses(folder):.0e}"
        try:
            line["graph in float64 off by"] = f"{graph_run.GraphRun(folder).compare():.0e}"
        except AssertionError:
            line["graph in float64 off by"] = "differs"
        said = (run.stdout + run.stderr).strip().splitlines() or [""]
        line["check"] = "passed" if run.returncode == 0 else said[-1].split(":")[1].strip()
        beyond = re.search(r"\n\n([^\n]*?) can't be compared", run.stdout)
        line["not compared"] = beyond[1] if beyond else ""
    return line


@functools.lru_cache(maxsize=None)
def image_set(size, program):
    """Returns a file of random images of ten classes, and what holds its folder."""
    held = tempfile.TemporaryDirectory()
    draws = torch.Generator().manual_seed(0)
    for i in range(40):
        folder = pathlib.Path(held.name, "images", f"class{i % 10}")
        folder.mkdir(parents=True, exist_ok=True)
        pixels = torch.randint(0, 256, (3, size, size), dtype=torch.uint8, generator=draws)
        torchvision.io.write_png(pixels, str(folder / f"{i}.png"))
    file = pathlib.Path(held.name, "set.h5")
    run(program, "data", "pack", "--images", file.parent / "images", "--size", size, "--out", file)
    return file, held


def run(program, *words):
    antichain.program.call([program, *map(str, words)])


def bits_by_stages(name, folder, program):
    """Trains a model for two steps on 1, 2 and 4 stages, and returns the hash of its weights and statistics
    behind each. `folder` is written."""
    write(name, module_of(name, num_classes=10), folder, record=False)
    images, _ = image_set(size_of(name), program)
    profile, result = (pathlib.Path(folder, file) for file in ("profile.json", "result.json"))
    batch = ["--graph", folder, "--batch", 8, "--microbatches", 4]
    run(program, "profile", *batch, "--seconds", 0.1, "--json", profile)
    states = {}
    for stages in (1, 2, 4):
        data = ["--dataset", f"hdf5:{images}", "--steps", 2, "--seed", 1, "--json", result]
        run(program, "train", *batch, *data, "--profile", profile, "--max-states", 20_000, "--local", stages)
        trained = json.loads(result.read_text())
        assert trained["ranks"] == stages
        states[stages] = trained["state"]
    return states


def compare_bits(name, folder, program):
    """Returns what the table says of bits."""
    try:
        states = bits_by_stages(name, folder, program)
    except antichain.AntichainError as problem:
        return str(problem)
    return "yes" if len(set(states.values())) == 1 else f"no: {states}"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--program")
    parser.add_argument("--trained", type=float, default=1000, help="million parameters")
    parser.add_argument("--only", choices=["check", "bits"])
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
            if options.only != "bits":
                bits = lines.get(name, {}).get("same bits", "")
                lines[name] = {**attempt(name, folder, options.program, options.trained * 1e6), "same bits": bits}
            if options.only != "check" and options.program and lines[name].get("check"):
                lines[name]["same bits"] = compare_bits(name, folder, options.program)
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
