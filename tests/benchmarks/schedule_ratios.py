#!/usr/bin/python3
"""Compares measured with predicted steps on two CPU ranks, each as a ratio of a schedule's step to 1f1b's.

    tests/benchmarks/schedule_ratios.py BUILD [--models resnet18 resnet20 …] [--schedules zb-v …]
    [--turns 5] [--steps 15] [--batch 32] [--microbatches 8]

BUILD is the build's folder. A turn measures a profile for 12 s on both ranks at the same time, plans every
schedule by it, and runs one job of two processes, in which all schedules take turns step by step
(schedule_times): first a step of 1f1b, then one of each other schedule, and so on. Machines are noisy, and
a step is compared with the steps of 1f1b before and after it, the nearer one counting more. A turn's measured
ratio is the median of its rounds without the first two. The table has the medians of all turns: of the
predicted ratio, of the measured one, and of how far it is off. Beside them stand the lowest and the highest
turn, which show the noise that is left. The exit code is 1 where a schedule is more than 5 % off.
"""
import argparse, json, os, statistics, sys, tempfile

from commands import call

MODELS = "mobilenet_v3_large squeezenet1_0 efficientnet_b0 mobilenet_v2".split()
WARM_UP, ALLOWED, PROFILE_S = 2, 0.05, "12"
SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scripts")
RANKS = ["mpirun", "-n", "2", "--bind-to", "core"]


def schedules_to_compare(build):
    listed = call(os.path.join(SCRIPTS, "schedules.py"), os.path.join(build, "antichain"))
    return [name for name in listed.split() if name != "1f1b"] + ["auto"]


class Turn:
    """One profile and one job. `predicted` and `measured` are ratios to the first schedule's step."""

    def __init__(self, options, name, schedules, folder):
        build = os.path.abspath(options.build)
        antichain = os.path.join(build, "antichain")
        microbatches = ["--microbatches", str(options.microbatches)]
        call(*RANKS, antichain, "profile", "--model", name, "--batch", options.batch, *microbatches,
             "--seconds", PROFILE_S, "--json", "profile.json", cwd=folder)
        predicted_s = {}
        for schedule in schedules:
            given = ["--profile", "profile.json", "--schedule", schedule, *microbatches,
                     "--overlap-steps", "off"]
            plan = f"{schedule}.plan.json"
            call(antichain, "plan", "--stages", "2", *given, "--json", plan, cwd=folder)
            call(antichain, "simulate", "--plan", plan, *given, "--write-schedule", f"{schedule}.schedule",
                 "--json", "step.json", cwd=folder)
            with open(os.path.join(folder, "step.json")) as file:
                predicted_s[schedule] = json.load(file)["step_s"]
        times = os.path.join(build, "tests", "benchmarks", "schedule_times")
        rounds = WARM_UP + options.steps + 1
        steps_s = json.loads(call(*RANKS, times, name, "profile.json", rounds, *schedules, cwd=folder))
        base_s = steps_s[schedules[0]]
        self.predicted = {s: predicted_s[s] / predicted_s[schedules[0]] for s in schedules}
        self.measured = {}
        for place, schedule in enumerate(schedules):
            later = place / len(schedules)  # where its step is between two of the first schedule's
            self.measured[schedule] = statistics.median(
                steps_s[schedule][i] / ((1 - later) * base_s[i] + later * base_s[i + 1])
                for i in range(WARM_UP, rounds - 1))

    def off(self, schedule):
        return self.measured[schedule] / self.predicted[schedule] - 1


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--schedules", nargs="+", help="[all]")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--microbatches", type=int, default=8)
    options = parser.parse_args()
    compared = options.schedules or schedules_to_compare(os.path.abspath(options.build))
    if os.geteuid() == 0:
        os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    worst = 0
    print("ratios to 1f1b's step")
    print(f"{'model':18} {'schedule':12} {'predicted':>10} {'measured':>10} {'off':>7} {'lowest':>7}"
          f" {'highest':>8}")
    for name in options.models:
        turns = []
        for _ in range(options.turns):
            with tempfile.TemporaryDirectory() as folder:
                turns.append(Turn(options, name, ["1f1b", *compared], folder))
        for schedule in compared:
            offs = sorted(turn.off(schedule) for turn in turns)
            off = statistics.median(offs)
            worst = max(worst, abs(off))
            print(f"{name:18} {schedule:12} {statistics.median(t.predicted[schedule] for t in turns):10.3f}"
                  f" {statistics.median(t.measured[schedule] for t in turns):10.3f} {off:+7.1%}"
                  f" {offs[0]:+7.1%} {offs[-1]:+8.1%}", flush=True)
    sys.exit(worst > ALLOWED)


if __name__ == "__main__":
    main()
