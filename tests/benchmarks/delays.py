#!/usr/bin/env python3
"""What delays do to a network: trains with older weights, by --emulate-delays, on one rank and one thread.

    tests/benchmarks/delays.py PROGRAM FOLDER [--data-dir D] [--text FILE] [--short] [--seeds 3] [--stages 4]

With --data-dir, ResNet-20 on CIFAR-10: 10 epochs of batches of 128 by the recipe. With --text (see
learn_text.py), gpt_nano: 2,000 steps of 12 rows by AdamW and by Muon, gradients clipped. Each is trained
synchronously, under pipedream and 2bw, and under pipedream with `--predict pipeoptim`, which was chosen
before any of them was run; as on so many stages, whose cut is that of the model's profile, the same for all
seeds.
--short takes 20 steps, of 32 images, evaluated once, and without --data-dir or --text synthetic images.

Every run saves as it goes, and the script goes on where it was stopped. FOLDER/runs.csv has a line for each
run that is done: model, optimiser, method, seed, steps, test loss, test accuracy. At the end a table of means
and spreads (the standard deviation of the seeds) is printed beside what others have published, and
FOLDER/delays.svg shows every run as a dot. The figure needs matplotlib.
"""
import argparse
import csv
import json
import pathlib
import statistics
import sys

from commands import call

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "app" / "python"))
from antichain.experiments import figures  # noqa: E402

METHODS = {"synchronous": [], "pipedream": ["--schedule", "pipedream"], "2bw": ["--schedule", "2bw"],
           "predicted": ["--schedule", "pipedream", "--predict", "pipeoptim"]}
COLUMNS = ("model", "optimiser", "method", "seed", "steps", "test_loss", "test_accuracy")
# Test accuracies in per cent on CIFAR-10, 100 epochs on 4 stages (the SpecTrain authors' repository,
# ntueclab/SpecTrain-PyTorch): data parallel, PipeDream, SpecTrain.
PUBLISHED = {"VGG-16": (91.10, 88.91, 89.38), "ResNet-50": (90.08, 89.22, 89.14),
             "GoogLeNet": (95.06, 94.52, 94.54), "DenseNet-121": (95.54, 95.45, 95.45)}
SHORT_STEPS, SHORT_BATCH = 20, 32


class Model:
    def __init__(self, args, name, optimisers, words):
        self.args, self.name, self.optimisers, self.words = args, name, optimisers, words

    def plan(self):
        """The files of a plan and its profile, which all runs share."""
        profile, plan = (self.args.folder / f"{self.name}.{kind}.json" for kind in ("profile", "plan"))
        if not plan.exists():
            shape = [word for option in ("--model", "--batch", "--microbatches")
                     for word in (option, self.words[self.words.index(option) + 1])]
            call(self.args.program, "profile", *shape, "--seconds", 1, "--json", profile)
            call(self.args.program, "plan", "--profile", profile, "--stages", self.args.stages, "--schedule",
                 "pipedream", "--microbatches", 1, "--json", plan)
        return profile, plan

    def train(self, optimiser, method, seed):
        """The line of a run."""
        profile, plan = self.plan()
        run = self.args.folder / f"{self.name}-{optimiser or 'recipe'}-{method}-{seed}"
        words = [*self.words, "--profile", profile, *METHODS[method], "--seed", seed]
        words += ["--optimiser", optimiser] if optimiser else []
        if "pipedream" in words:
            words += ["--emulate-delays", self.args.stages, "--plan", plan]
        if self.args.short:
            words += ["--steps", SHORT_STEPS, "--evaluate-every", SHORT_STEPS]
        call(self.args.program, "train", *words, "--checkpoint", run, "--checkpoint-every", "60s", "--keep", 1,
             "--resume", "auto", "--json", f"{run}.json")
        result = json.loads(pathlib.Path(f"{run}.json").read_text())
        return (self.name, optimiser or "recipe", method, seed, result["steps"], result["final_test_loss"],
                result.get("final_test_accuracy"))


def models(args):
    rows = []
    if args.data_dir or (args.short and not args.text):
        data = ["--data-dir", args.data_dir] if args.data_dir else ["--dataset", "synthetic"]
        length = [] if args.short else ["--epochs", 10]
        rows.append(Model(args, "resnet20", [None], ["--model", "resnet20", *data, "--batch",
                                                     SHORT_BATCH if args.short else 128,
                                                     "--microbatches", 1, *length]))
    if args.text:
        text = args.folder / "text.h5"
        if not text.exists():
            call(args.program, "data", "tokens", "--text", args.text, "--out", text)
        length = [] if args.short else ["--steps", 2000, "--evaluate-every", 2000]
        rows.append(Model(args, "gpt_nano", ["adamw", "muon"], [
            "--model", "gpt_nano", "--dataset", f"hdf5:{text}", "--batch", 12, "--microbatches", 1,
            "--dropout", 0,
            *length]))
    return rows


def read(file):
    if not file.exists():
        return []
    with open(file, newline="") as lines:
        return list(csv.DictReader(lines))


def groups(rows, column):
    """The values of a column by model, optimiser and method."""
    found = {}
    for row in rows:
        if row[column]:
            found.setdefault((row["model"], row["optimiser"], row["method"]), []).append(float(row[column]))
    return found


def print_tables(rows):
    loss, accuracy = groups(rows, "test_loss"), groups(rows, "test_accuracy")

    def words(values, factor=1):
        spread = f" ± {factor * statistics.stdev(values):.3g}" if len(values) > 1 else ""
        return f"{factor * statistics.mean(values):.4g}{spread}"
    print("| model | optimiser | method | seeds | test loss | test accuracy, % |\n|---|---|---|---|---|---|")
    for key in loss:
        print("| " + " | ".join((*key, str(len(loss[key])), words(loss[key]),
                                 words(accuracy[key], 100) if key in accuracy else "–")) + " |")
    print("\nPublished (4 stages, 100 epochs of CIFAR-10), test accuracy in %:\n"
          "| model | data parallel | pipedream | spectrain |\n|---|---|---|---|")
    for name, numbers in PUBLISHED.items():
        print("| " + " | ".join((name, *(f"{x:.2f}" for x in numbers))) + " |")


def draw(rows, file):
    import matplotlib
    matplotlib.use("Agg")
    matplotlib.rcParams.update(figures.STYLE)
    from matplotlib import pyplot

    kinds = list(dict.fromkeys((row["model"], row["optimiser"]) for row in rows))
    figure, grid = pyplot.subplots(1, len(kinds), figsize=(3.2 * len(kinds), 3.2), squeeze=False,
                                   layout="constrained")
    of_model = {}  # the axes that have the same scale
    for axes, kind in zip(grid.flat, kinds):
        if of_model.setdefault(kind[0], axes) is not axes:
            axes.sharey(of_model[kind[0]])
        for i, method in enumerate(METHODS):
            values = groups(rows, "test_loss").get((*kind, method), [])
            axes.plot([i] * len(values), values, figures.MARKS[i], color=figures.COLOURS[i])
        axes.set(title=", ".join(kind), ylabel="test loss", xticks=range(len(METHODS)))
        axes.set_xticklabels(METHODS, rotation=30, ha="right")
    figure.savefig(file, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--data-dir")
    parser.add_argument("--text")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--stages", type=int, default=4)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    file = args.folder / "runs.csv"
    done = {(row["model"], row["optimiser"], row["method"], row["seed"]) for row in read(file)}
    chosen = models(args)
    if not chosen:
        parser.error("give --data-dir, --text or --short")
    for seed in range(1, args.seeds + 1):  # all methods have as many seeds at any moment
        for model in chosen:
            for optimiser in model.optimisers:
                for method in METHODS:
                    if (model.name, optimiser or "recipe", method, str(seed)) in done:
                        continue
                    line = model.train(optimiser, method, seed)
                    with open(file, "a", newline="") as lines:
                        writer = csv.writer(lines)
                        if lines.tell() == 0:
                            writer.writerow(COLUMNS)
                        writer.writerow(line)
                    print(*line, flush=True)
    rows = read(file)
    print_tables(rows)
    try:
        draw(rows, args.folder / "delays.svg")
    except ImportError:
        print(figures.NO_PLOTS)


if __name__ == "__main__":
    main()
