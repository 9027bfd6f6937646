#!/usr/bin/python3
"""Compares predicted with measured memory, of networks that recompute what they must.

    tests/benchmarks/memory.py PROGRAM [--models resnet18 vgg16 …] [--ranks 1 2] [--batch 64]
    [--microbatches 4]

Each network is profiled once. For each number of ranks, `plan --memory-curve` says from which memory of a
rank on any plan fits, and from which on nothing is recomputed. Three limits lie between: a fifth and three
fifths of the way up, and the upper end. Within each of them the network trains two steps and is evaluated
(`--recompute auto`), on generated images of CIFAR's size or, where it reads tokens, on this documentation.
A row has the bytes of each process, those that `train` has added up before it began beside the growth of
its largest resident set, and the deviation in percent.

It ends with 1 where a deviation is above 5 %.
"""
import argparse, json, os, pathlib, subprocess, sys, tempfile

MODELS = ["resnet18", "vgg16", "densenet121", "gpt_nano"]
READ_TOKENS = ["gpt_nano", "llama"]
TEXT = pathlib.Path(__file__).parents[2] / "docs/planning.md"
LIMITS = [0.2, 0.6, 1.0]  # of the way from the least memory to that which is enough for everything
MOST = 5.0  # percent


def run(*command):
    """Returns what it prints, or ends with what it says."""
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def ends_of_curve(text):
    """Returns the first and the last limit of a printed curve, in bytes."""
    table = text.split(" points are proved")[0]  # the drawing follows
    rows = [line.split() for line in table.splitlines()]
    limits = [float(row[0]) for row in rows if len(row) == 5 and row[0].replace(".", "").isdigit()]
    return limits[0] * 2**20, limits[-1] * 2**20


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--ranks", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--batch", default="64")
    parser.add_argument("--microbatches", default="4")
    asked = parser.parse_args()
    step = ["--batch", asked.batch, "--microbatches", asked.microbatches]
    worst = 0.0
    print(f"{'network':14} {'ranks':>5} {'limit MiB':>10}  predicted / measured MiB of each process (%)")
    with tempfile.TemporaryDirectory() as folder:
        profile, result = os.path.join(folder, "profile.json"), os.path.join(folder, "run.json")
        tokens = os.path.join(folder, "tokens.h5")
        run(asked.program, "data", "tokens", "--text", str(TEXT), "--out", tokens)
        for model in asked.models:
            data = f"hdf5:{tokens}" if model in READ_TOKENS else "synthetic"
            run(asked.program, "profile", "--model", model, *step, "--local", "1", "--json", profile)
            for ranks in asked.ranks:
                planned = ["--profile", profile, "--stages", str(ranks)]
                curve = run(asked.program, "plan", *planned, *step[2:], "--memory-curve")
                least, enough = ends_of_curve(curve)
                for share in LIMITS:
                    limit = int(least + share * (enough - least)) + 2**15  # the curve is rounded
                    run("mpirun", "-n", str(ranks), "--oversubscribe", asked.program, "train",
                        "--model", model, "--dataset", data, *step, *planned,
                        "--memory-bytes", str(limit), "--recompute", "auto", "--epochs", "1", "--steps", "2",
                        "--lr", "0.001", "--json", result)
                    with open(result) as file:
                        processes = json.load(file)["process_memory"]
                    cells = []
                    for process in processes:
                        predicted, measured = process["estimated_bytes"], process["measured_bytes"]
                        off = (predicted / measured - 1) * 100
                        worst = max(worst, abs(off))
                        cells.append(f"{predicted / 2**20:.1f} / {measured / 2**20:.1f} ({off:+.1f})")
                    print(f"{model:14} {ranks:5} {limit / 2**20:10.1f}  {',  '.join(cells)}", flush=True)
    print(f"largest deviation {worst:.1f} %")
    sys.exit(worst > MOST)


if __name__ == "__main__":
    main()
