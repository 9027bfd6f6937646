"""What scripts that try every model of a package have in common: antichain.from_torch writes a model as a
folder, `antichain check` compares it with what PyTorch recorded, and `antichain train` trains it two steps on
1, 2 and 4 stages, whose bits are compared. They write a table of one line a model.

Of models of more million parameters than --trained says, the network is read, and nothing is computed with
it: from_torch trains a model beside what it has read, which takes 50 bytes a parameter. The table has no
seconds for these. Others of more than --compared are not trained further. A batch has two images, or four
times two with 10 classes where bits are compared. A line that the table has and that is not tried now stays,
and so does a column.
"""

import argparse
import csv
import functools
import json
import pathlib
import re
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


def float32_error_of_losses(folder):
    """Returns how far PyTorch's own float32 is from its float64, as a share of the loss, in five steps."""
    recorded = antichain.safetensors.read(pathlib.Path(folder) / "check.safetensors")
    return abs(recorded["float32_error.losses"] / recorded["losses"])


def run(program, *words):
    antichain.program.call([program, *map(str, words)])


def checked(folder, program):
    """Returns what the table says of a folder's comparison."""
    errors = pathlib.Path(folder) / "errors.json"
    ran = subprocess.run(
        [program, "check", "--graph", folder, "--json", errors], capture_output=True, text=True
    )
    line = {"PyTorch's float32 off by": f"{max(float32_error_of_losses(folder)):.0e}"}
    if errors.exists():
        line["losses off by"] = f"{max(json.loads(errors.read_text())['losses'].values()):.0e}"
    try:
        line["graph in float64 off by"] = f"{graph_run.GraphRun(folder).compare():.0e}"
    except AssertionError:
        line["graph in float64 off by"] = "differs"
    said = (ran.stdout + ran.stderr).strip().splitlines() or [""]
    line["check"] = "passed" if ran.returncode == 0 else said[-1].split(":")[1].strip()
    beyond = re.search(r"\n\n([^\n]*?) can't be compared", ran.stdout)
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


class Models:
    """The models of a package; a subclass says which, how each is made, and how large its images are."""

    key, columns = "model", COLUMNS
    trained, compared = 1000, 60  # million parameters

    def names(self):
        raise NotImplementedError

    def size_of(self, name):
        raise NotImplementedError

    def module_of(self, name, **options):
        raise NotImplementedError

    def model(self, name):
        """Returns what the table calls the model of this name."""
        return name

    def write(self, name, module, folder, record):
        size = self.size_of(name)
        antichain.from_torch(module, torch.randn(2, 3, size, size), folder=folder, record=record)

    def attempt(self, name, folder, program, trained=1000, compared=60):
        """Returns a line of the table, without its bits. `folder` is written."""
        module = self.module_of(name)
        parameters = sum(p.numel() for p in module.parameters())
        compare = program and parameters <= compared * 1e6
        size = self.size_of(name)
        line = {self.key: name, "model": self.model(name), "parameters": parameters, "image": size}
        begin = time.monotonic()
        try:
            if parameters > trained * 1e6:
                pick, clauses = pick_logits("cross_entropy", 0), what_is_not_done(module)
                images = {"images": torch.randn(2, 3, size, size)}
                t = read(module, images, pick, ("images", "labels", "loss"), clauses)[2]
                return {**line, "nodes": len(t.nodes) + 1}
            self.write(name, module, folder, record=bool(compare))
        except antichain.AntichainError as problem:
            return {**line, "not translated because": str(problem).split("; the operators are")[0]}
        line["seconds"] = f"{time.monotonic() - begin:.1f}"
        line["nodes"] = len(re.findall('"op":', (pathlib.Path(folder) / "graph.json").read_text()))
        return {**line, **checked(folder, program)} if compare else line

    def bits_by_stages(self, name, folder, program):
        """Trains a model for two steps on 1, 2 and 4 stages, and returns the hash of its weights and
        statistics behind each. `folder` is written."""
        self.write(name, self.module_of(name, num_classes=10), folder, record=False)
        images, _ = image_set(self.size_of(name), program)
        profile, result = (pathlib.Path(folder, file) for file in ("profile.json", "result.json"))
        batch = ["--graph", folder, "--batch", 8, "--microbatches", 4]
        run(program, "profile", *batch, "--seconds", 0.1, "--json", profile)
        states = {}
        for stages in (1, 2, 4):
            data = ["--dataset", f"hdf5:{images}", "--steps", 2, "--seed", 1, "--json", result]
            planned = ["--profile", profile, "--max-states", 20_000, "--local", stages]
            run(program, "train", *batch, *data, *planned)
            trained = json.loads(result.read_text())
            assert trained["ranks"] == stages
            states[stages] = trained["state"]
        return states

    def compare_bits(self, name, folder, program):
        """Returns what the table says of bits."""
        try:
            states = self.bits_by_stages(name, folder, program)
        except antichain.AntichainError as problem:
            return str(problem)
        return "yes" if len(set(states.values())) == 1 else f"no: {states}"

    def try_them(self, description, table):
        """Is the script: tries the models that are named, or all, and writes the table."""
        parser = argparse.ArgumentParser(
            description=f"{description}\n{__doc__}", formatter_class=argparse.RawDescriptionHelpFormatter
        )
        parser.add_argument("models", nargs="*", metavar=self.key.upper())
        parser.add_argument("--program", help="without it nothing is compared")
        parser.add_argument("--trained", type=float, default=self.trained, help="million parameters")
        parser.add_argument("--compared", type=float, default=self.compared, help="million parameters")
        parser.add_argument("--only", choices=["check", "bits"])
        parser.add_argument("--out", default=root / "docs" / table, type=pathlib.Path)
        options = parser.parse_args()
        warnings.filterwarnings("ignore")
        torch.set_num_threads(1)
        lines = {}
        if options.out.exists():
            with options.out.open() as file:
                lines = {line[self.key]: line for line in csv.DictReader(file)}
        names = [*self.names()]
        for name in options.models or names:
            with tempfile.TemporaryDirectory() as folder:
                if options.only != "bits":
                    bits = lines.get(name, {}).get("same bits", "")
                    tried = self.attempt(name, folder, options.program, options.trained, options.compared)
                    lines[name] = {**tried, "same bits": bits}
                if options.only != "check" and options.program and lines[name].get("check"):
                    lines[name]["same bits"] = self.compare_bits(name, folder, options.program)
            print(", ".join(str(lines[name].get(column, "")) for column in self.columns), flush=True)
            with options.out.open("w", newline="") as file:
                writer = csv.DictWriter(file, self.columns, lineterminator="\n")
                writer.writeheader()
                writer.writerows(lines[name] for name in names if name in lines)
        translated = sum(not line.get("not translated because") for line in lines.values())
        print(f"{translated} of {len(lines)} models are translated")
