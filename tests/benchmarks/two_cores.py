#!/usr/bin/python3
"""Measures how much of two cores a pipeline, two replicas and two threads use.

    tests/benchmarks/two_cores.py PROGRAM FOLDER [--ways pipeline replicas threads] [--rounds 5]
        [--model resnet18] [--batch 512] [--microbatches 32] [--steps 8] [train option …]

They are compared with two independent runs of one rank and one thread, each on a core of its own and both at
the same time: these have no bubble, no messages and no imbalance, but share the memory in the same way. A
round makes each run once. The pipeline is the plan of a profile that two ranks make first at the same time,
and its share is that of the two runs times one minus the bubble that `simulate` prints; its measured step
stands beside the predicted one. The last line has the medians. Rates are samples a second, medians of the
steps after the first two.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

from commands import call

CORES = sorted(os.sched_getaffinity(0))[:2]
WAYS = {"pipeline": 2, "replicas": 2, "threads": 1}  # and their ranks


class Runs:
    def __init__(self, args, options):
        self.program, self.folder, self.steps = args.program.resolve(), args.folder, args.steps
        self.shape = ["--model", args.model, "--batch", args.batch, "--microbatches", args.microbatches]
        self.options = options
        self.folder.mkdir(parents=True, exist_ok=True)
        self.profile, self.plan = self.folder / "profile.json", self.folder / "plan.json"
        lengths = ("--sequence",)  # the options of train that a profile has, too
        given = [word for name, word in zip(options, options[1:]) if name in lengths for word in (name, word)]
        call(self.program, "profile", "--local", 2, *self.shape, *given, "--json", self.profile)
        call(self.program, "plan", "--profile", self.profile, "--stages", 2, "--microbatches",
             args.microbatches, "--json", self.plan)
        simulated = self.folder / "simulated.json"
        call(self.program, "simulate", "--profile", self.profile, "--plan", self.plan, "--microbatches",
             args.microbatches, "--json", simulated)
        self.bubble = json.loads(simulated.read_text())["bubble_share"]

    def words(self, name, *more):
        metrics = self.folder / f"{name}.jsonl"
        metrics.unlink(missing_ok=True)
        return [self.program, "train", *self.shape, *self.options, "--profile", self.profile, "--steps",
                self.steps, "--metrics", metrics, *more]

    def rate(self, name):
        """Returns samples a second, and the summary."""
        lines = [json.loads(line) for line in (self.folder / f"{name}.jsonl").read_text().splitlines()]
        rates = [value for line in lines if "loss" in line for key, value in line.items()
                 if key.endswith("_per_s") and not key.startswith("tokens")]
        return statistics.median(rates[2:]), lines[-1]

    def independent(self):
        """Returns the rates of two runs at the same time."""
        commands = [["taskset", "-c", core, *self.words(f"alone{i}", "--local", 1)]
                    for i, core in enumerate(CORES)]
        running = [subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL) for command in commands]
        if any([run.wait() for run in running]):
            sys.exit("an independent run failed")
        return sum(self.rate(f"alone{i}")[0] for i in range(len(CORES)))

    def together(self, way):
        """Returns the rate of both cores, and the summary."""
        more = {"pipeline": ["--plan", self.plan], "replicas": ["--replicas", 2],
                "threads": ["--local", 1, "--threads", 2]}[way]
        launcher = ["mpirun", "-n", WAYS[way], "--bind-to", "core"] if WAYS[way] > 1 else []
        call(*launcher, *self.words(way, *more))
        return self.rate(way)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--microbatches", type=int, default=32)
    parser.add_argument("--steps", type=int, default=8)
    args, options = parser.parse_known_args()
    runs = Runs(args, options)
    print(f"bubble {runs.bubble:.4f}; share of two independent runs (pipeline: times one minus the bubble)")
    shares = {way: [] for way in args.ways}
    for number in range(1, args.rounds + 1):
        alone = runs.independent()
        line = f"{number:3}  two runs {alone:8.1f}/s"
        for way in args.ways:
            rate, summary = runs.together(way)
            shares[way].append(rate / alone / (1 - runs.bubble if way == "pipeline" else 1))
            line += f"  {way} {rate:8.1f}/s {shares[way][-1]:.3f}"
            if way == "pipeline":
                line += f" ({summary['measured_step_s'] / summary['predicted_step_s'] - 1:+.1%} of predicted)"
        print(line, flush=True)
    print("median  " + "  ".join(f"{way} {statistics.median(values):.3f}" for way, values in shares.items()))


if __name__ == "__main__":
    main()
