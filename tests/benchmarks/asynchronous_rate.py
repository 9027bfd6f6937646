#!/usr/bin/python3
"""Compares asynchronous steps on two CPU ranks with what the slowest stage's own work takes.

    tests/benchmarks/asynchronous_rate.py BUILD [--models resnet18 …] [--schedules 2bw pipedream …]
    [--turns 5] [--batch 32] [--microbatches 8]

BUILD is the build's folder. A profile is measured for 12 s on both ranks at the same time, and each schedule
is planned by it. In one job of two processes two things take turns (schedule_times): a row of steps, from an
empty pipeline to an empty one; and the same work of both ranks at the same time without any message, of which
the slowest rank counts. A turn's rate is the quotient of the second time and the first. The table has the
median of the turns, the lowest and the highest. A step of pipedream and stale is one micro-batch. The exit
code is 1 where a median is below 0.97.
"""
import argparse, json, os, statistics, sys, tempfile

from commands import call
from schedule_ratios import PROFILE_S, RANKS

LEAST = 0.97
TIMES = "tests/benchmarks/schedule_times"


def rates(options, model, schedule, folder):
    build = os.path.abspath(options.build)
    antichain, times = os.path.join(build, "antichain"), os.path.join(build, TIMES)
    microbatches = 1 if schedule in ("pipedream", "stale") else options.microbatches
    shape = ["--batch", str(options.batch // options.microbatches * microbatches), "--microbatches",
             str(microbatches)]
    call(*RANKS, antichain, "profile", "--model", model, *shape, "--seconds", PROFILE_S, "--json",
         "profile.json", cwd=folder)
    given = ["--profile", "profile.json", "--schedule", schedule, *shape[2:]]
    call(antichain, "plan", "--stages", "2", *given, "--json", f"{schedule}.plan.json", cwd=folder)
    call(antichain, "simulate", "--plan", f"{schedule}.plan.json", *given, "--write-schedule",
         f"{schedule}.schedule", cwd=folder)
    steps_s = json.loads(call(*RANKS, times, model, "profile.json", options.turns + 1, schedule,
                              f"alone:{schedule}", cwd=folder))
    pairs = zip(steps_s[schedule][1:], steps_s[f"alone:{schedule}"][1:])  # the first turn warms up
    return [own_s / step_s for step_s, own_s in pairs]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--models", nargs="+", default=["resnet18"])
    parser.add_argument("--schedules", nargs="+", default=["2bw", "pipedream"])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--microbatches", type=int, default=8)
    options = parser.parse_args()
    if os.geteuid() == 0:
        os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    worst = 1
    print(f"{'model':18} {'schedule':12} {'rate':>6} {'lowest':>7} {'highest':>8}")
    for model in options.models:
        for schedule in options.schedules:
            with tempfile.TemporaryDirectory() as folder:
                found = sorted(rates(options, model, schedule, folder))
            rate = statistics.median(found)
            worst = min(worst, rate)
            print(f"{model:18} {schedule:12} {rate:6.3f} {found[0]:7.3f} {found[-1]:8.3f}", flush=True)
    sys.exit(worst < LEAST)


main()
