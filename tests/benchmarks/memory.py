#!/usr/bin/python3
"""Compares predicted with measured memory and steps, of networks that recompute what they must.

    tests/benchmarks/memory.py PROGRAM [--models resnet18 vgg16 …] [--ranks 1 2] [--batch 64]
    [--microbatches 4] [--steps 8] [--limits-mib 250 400 …]

For each network and number of ranks, `plan --memory-curve` says from which memory of a rank on any plan
fits, and from which on nothing is recomputed. Three limits lie between: a fifth and three fifths of the way
up, and the upper end; --limits-mib gives others, where a curve would take long. Within each of them the
network trains some steps and is evaluated (`--recompute auto`), by a profile that is made right before,
because a machine is faster at times and slower at others. It reads generated images of CIFAR's size or
words of this documentation. A row has the milliseconds of a step and the bytes of each process, those that
`train` has added up before it began beside the growth of its largest resident set, and the deviations in
percent. A measured step is the median. Where ranks lacked a core for a part of their time, times are
doubtful.

It ends with 1 where a deviation of bytes is above 5 %, the median of those of steps above 5 %, or one of them
above 12 %.
"""
import argparse, json, os, pathlib, statistics, sys, tempfile

from commands import call

MODELS = ["resnet18", "vgg16", "densenet121", "gpt_nano"]
READ_TOKENS = ["gpt_nano", "llama"]
TEXT = pathlib.Path(__file__).parents[2] / "docs/planning.md"
LIMITS = [0.2, 0.6, 1.0]  # of the way from the least memory to that which is enough for everything
MOST, MOST_OF_STEP = 5.0, 12.0  # percent


def compared(predicted, measured, unit, offs):
    """Returns both with their deviation, and notes how large that is."""
    off = (predicted / measured - 1) * 100
    offs.append(abs(off))
    return f"{predicted / unit:.1f} / {measured / unit:.1f} ({off:+.1f})"


def limits_of_curve(text):
    """Returns limits between the first and the last of a printed curve, in bytes."""
    table = text.split(" points are proved")[0]  # the drawing follows
    rows = [line.split() for line in table.splitlines()]
    limits = [float(row[0]) for row in rows if len(row) == 5 and row[0].replace(".", "").isdigit()]
    least, enough = limits[0] * 2**20, limits[-1] * 2**20
    return [int(least + share * (enough - least)) + 2**15 for share in LIMITS]  # the curve is rounded


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--ranks", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--batch", default="64")
    parser.add_argument("--microbatches", default="4")
    parser.add_argument("--steps", default="8")
    parser.add_argument("--limits-mib", nargs="+", type=float)
    asked = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    step = ["--batch", asked.batch, "--microbatches", asked.microbatches]
    bytes_off, step_off = [], []
    print(f"{'network':14} {'ranks':>5} {'limit MiB':>10}  {'no core':>8} {'predicted / measured ms of a step (%)':>40}  "
          f"and MiB of each process (%)")
    with tempfile.TemporaryDirectory() as folder:
        profile, result = os.path.join(folder, "profile.json"), os.path.join(folder, "run.json")
        tokens = os.path.join(folder, "tokens.h5")
        call(asked.program, "data", "tokens", "--text", str(TEXT), "--out", tokens)
        for model in asked.models:
            data = f"hdf5:{tokens}" if model in READ_TOKENS else "synthetic"
            for ranks in asked.ranks:
                on_ranks = ["mpirun", "-n", str(ranks), "--oversubscribe", asked.program]
                measure = [*on_ranks, "profile", "--model", model, *step, "--json", profile]
                call(*measure)
                planned = ["--profile", profile, "--stages", str(ranks)]
                limits = ([int(mib * 2**20) for mib in asked.limits_mib] if asked.limits_mib else
                          limits_of_curve(call(asked.program, "plan", *planned, *step[2:], "--memory-curve")))
                for limit in limits:
                    call(*measure)
                    call(*on_ranks, "train", "--model", model, "--dataset", data, *step, *planned,
                         "--memory-bytes", str(limit), "--recompute", "auto", "--epochs", "1",
                         "--steps", asked.steps, "--lr", "0.001", "--json", result)
                    with open(result) as file:
                        done = json.load(file)
                    step_cell = compared(done["predicted_step_s"], done["measured_step_s"], 1e-3, step_off)
                    cells = [compared(process["estimated_bytes"], process["measured_bytes"], 2**20, bytes_off)
                             for process in done["process_memory"]]
                    print(f"{model:14} {ranks:5} {limit / 2**20:10.1f} {done['starved_share']:8.1%} "
                          f"{step_cell:>40}  {',  '.join(cells)}", flush=True)
    median = statistics.median(step_off)
    print(f"largest deviation of bytes {max(bytes_off):.1f} %, of steps {max(step_off):.1f} %, their median "
          f"{median:.1f} %")
    sys.exit(max(bytes_off) > MOST or median > MOST or max(step_off) > MOST_OF_STEP)


if __name__ == "__main__":
    main()
