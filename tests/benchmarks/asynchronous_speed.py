#!/usr/bin/env python3
"""Rehearses asynchronous schedules and 1f1b on as many ranks as stages, for each profile of a folder.

    tests/benchmarks/asynchronous_speed.py PROGRAM PROFILES [--ranks 8] [--microbatches 8] [--simulate]
        [--schedules 1f1b 2bw …] [--stage-ms 10]

PROFILES is a folder as python3 -m antichain.experiments takes it: MODEL.json, MODEL.txt or MODEL/graph.txt,
as PipeDream's public profiler/image_classification/profiles. The table has the predicted and the rehearsed
speedup over one device of each, and their geometric means; under pipedream and stale a step is one
micro-batch. The last column is the load bound: all work over that of the slowest stage of the plan. With
--simulate nothing is rehearsed. Times are scaled so that a micro-batch takes the slowest stage 10 ms, or
--stage-ms. Ranks are threads of one process.
"""
import argparse
import json
import pathlib
import re
import statistics
import tempfile

from commands import call


def profiles_of(folder):
    found = {file.stem: file for ending in ("json", "txt") for file in folder.glob(f"*.{ending}")}
    found |= {file.parent.name: file for file in folder.glob("*/graph.txt")}
    return dict(sorted(found.items()))


def speedups(args, profile, schedule, folder):
    """Predicted and rehearsed (or None), and the load bound."""
    microbatches = 1 if schedule in ("pipedream", "stale") else args.microbatches
    plan = pathlib.Path(folder) / "plan.json"
    words = ["--profile", profile, "--schedule", schedule, "--microbatches", microbatches]
    call(args.program, "plan", *words, "--stages", args.ranks, "--json", plan)
    works = [stage["compute_ms"] for stage in json.loads(plan.read_text())["stages"]]
    if args.simulate:
        told = call(args.program, "simulate", *words, "--plan", plan)
        found = re.search(r"speedup over .*? ([\d.]+)", told)
        return float(found[1]), None, sum(works) / max(works)
    told = call(args.program, "rehearse", *words, "--plan", plan, "--local", args.ranks, "--steps", 1,
                "--time-scale", args.stage_ms / max(works))
    found = re.search(r"speedup\s+([\d.]+)\s+([\d.]+)", told)
    return float(found[1]), float(found[2]), sum(works) / max(works)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("profiles", type=pathlib.Path)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--stage-ms", type=float, default=10)
    parser.add_argument("--schedules", nargs="+", default=["1f1b", "2bw", "pipedream", "stale"])
    args = parser.parse_args()
    all_of = {}
    print(f"{'model':20} {'schedule':12} predicted  rehearsed  load bound")
    with tempfile.TemporaryDirectory() as folder:
        for model, profile in profiles_of(args.profiles).items():
            for schedule in args.schedules:
                numbers = speedups(args, profile, schedule, folder)
                all_of.setdefault(schedule, []).append(numbers)
                print_row(model, schedule, numbers)
    for schedule, rows in all_of.items():
        print_row("geometric mean", schedule,
                  [None if None in of else statistics.geometric_mean(of) for of in zip(*rows)])


def print_row(model, schedule, numbers):
    words = " ".join(f"{'–' if x is None else format(x, '.2f'):>10}" for x in numbers)
    print(f"{model:20} {schedule:12} {words}", flush=True)


if __name__ == "__main__":
    main()
