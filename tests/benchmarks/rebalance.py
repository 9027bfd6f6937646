#!/usr/bin/python3
"""Measures what moving nodes between ranks brings where a core gets slow during a run.

    tests/benchmarks/rebalance.py PROGRAM FOLDER [--model resnet20] [--batch 128] [--microbatches 32]
        [--steps 250] [--tries 3]

Two ranks train, each on a core of its own. After 20 steps a process that computes without end comes to the
second core, so that the rank there has half of it. The run is made with `--rebalance off` and with `auto`, by
the same profile. A line has the median step before the load, that of the last 200 steps of either run, their
ratio, how many steps after the load the move came, what it paused for in steps, and whether both runs end
with the same bits. The best ratio of some tries counts, because other load on the machine takes from both.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import time

from commands import call

LOADED_FROM, CORES = 20, sorted(os.sched_getaffinity(0))[:2]


def lines(file):
    """Returns the objects of a metrics file whose lines are complete so far."""
    text = file.read_text() if file.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def train(args, rebalance):
    """Returns the seconds of all steps, and the summary."""
    metrics = args.folder / f"{rebalance}.jsonl"
    metrics.unlink(missing_ok=True)
    words = ["train", *args.network, "--dataset", "synthetic", "--profile", args.folder / "profile.json",
             "--steps", args.steps, "--rebalance", rebalance, "--metrics", metrics]
    job = ["mpirun", "--bind-to", "none"]
    for core in CORES:
        job += [*([":"] if core != CORES[0] else []), "-n", "1", "taskset", "-c", core, args.program, *words]
    with open(args.folder / f"{rebalance}.log", "w", encoding="utf-8") as log:
        run = subprocess.Popen([*map(str, job)], stdout=log, stderr=log)
        busy = None
        try:
            while run.poll() is None:
                if not busy and len(lines(metrics)) >= LOADED_FROM:
                    busy = subprocess.Popen(["taskset", "-c", str(CORES[1]), "sh", "-c",
                                             "while :; do :; done"])
                time.sleep(0.05)
        finally:
            for process in filter(None, (busy, run)):
                process.kill()
                process.wait()
    if run.returncode != 0:
        raise SystemExit(f"the run ended with code {run.returncode}: see {log.name}")
    written = lines(metrics)
    return [line["seconds"] for line in written if "seconds" in line and "loss" in line], written[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--model", default="resnet20")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--microbatches", type=int, default=32)
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--tries", type=int, default=3)
    args = parser.parse_args()
    args.program = args.program.resolve()
    args.folder.mkdir(parents=True, exist_ok=True)
    args.network = ["--model", args.model, "--batch", args.batch, "--microbatches", args.microbatches]
    if os.geteuid() == 0:
        os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    call("mpirun", "-n", 2, "--bind-to", "core", args.program, "profile", *args.network, "--json",
         args.folder / "profile.json")
    print("before ms   stays ms   moves ms   ratio   found after   pause, steps   same bits", flush=True)
    for _ in range(args.tries):
        (stays, one), (moves, other) = train(args, "off"), train(args, "auto")
        moved = [r for r in other.get("rebalances", []) if r["what"] == "moved"]
        first = moved[0]["step"] if moved else 0
        parts = moves[5:LOADED_FROM], stays[-200:], moves[-200:]
        before, a, b = (1e3 * statistics.median(part) for part in parts)
        pause = (moved[0]["pause_s"] + moved[0]["planning_s"]) / moved[0]["step_before_s"] if moved else 0
        found = first - LOADED_FROM if moved else "-"
        print(f"{before:9.1f} {a:10.1f} {b:10.1f} {a / b:7.2f} {found:>13} {pause:14.2f}   "
              f"{'yes' if one['state'] == other['state'] else 'NO'}", flush=True)


if __name__ == "__main__":
    main()
