#!/usr/bin/python3
"""Compares measured with predicted steps on two CPU ranks, each as a ratio of a schedule's step to 1f1b's.

    tests/benchmarks/schedule_ratios.py PROGRAM [--models resnet18 vgg16 …] [--schedules zb-v …]
    [--overlap-steps off] [--rounds 5] [--jobs 4] [--batch 32] [--microbatches 8] [--steps 10]

For each model one profile of 12 s, which both ranks measure at the same time, serves all plans. A schedule and 1f1b
take turns, because machines are noisy and only the ratio counts. A turn is JOBS jobs of each side, one of the
schedule and one of 1f1b alternately; its ratio is that of the median steps, without the first two of a job.
Many short jobs tell more than a long one: where a core has fast and slow times of some seconds, the same job
again takes up to a tenth longer, and its fastest step differs even more. A schedule's measured ratio is the
median of its turns. Beside it stand the lowest and the highest turn, which show the noise that is left, as
does `--schedules 1f1b`, which compares 1f1b with itself. The predicted figure is the period, which is the
step where steps do not overlap. The exit code is 1 where a measured ratio is more than 5 % off the predicted
one.
"""
import argparse, json, os, statistics, subprocess, sys, tempfile

MODELS = "resnet18 resnet20 squeezenet1_0 mobilenet_v3_large".split()
SCHEDULES = "gpipe zb-h1 zb-h2 interleaved zb-v v-half v-min dualpipe-v auto".split()
WARM_UP, ALLOWED, PROFILE_S = 2, 0.05, "12"
RANKS = ["mpirun", "-n", "2", "--bind-to", "core"]


def run(command, folder):
    job = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if job.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{job.stderr[-2000:]}")


class Model:
    def __init__(self, options, name, folder):
        self.program, self.name, self.folder = os.path.abspath(options.program), name, folder
        self.form = ["--batch", str(options.batch), "--microbatches", str(options.microbatches)]
        self.microbatches, self.steps = ["--microbatches", str(options.microbatches)], str(options.steps)
        self.overlap = ["--overlap-steps", options.overlap_steps]
        run(RANKS + [self.program, "profile", "--model", name, *self.form, "--seconds", PROFILE_S,
                     "--json", "profile.json"], folder)

    def predicted_s(self, schedule):
        """Plans for the schedule, and returns the period."""
        given = ["--profile", "profile.json", "--schedule", schedule, *self.microbatches, *self.overlap]
        run([self.program, "plan", "--stages", "2", *given, "--json", f"{schedule}.json"], self.folder)
        run([self.program, "simulate", "--plan", f"{schedule}.json", *given, "--json", "step.json"],
            self.folder)
        with open(os.path.join(self.folder, "step.json")) as file:
            return json.load(file)["period_s"]

    def steps_s(self, schedule):
        """Runs a job, and returns the times of its steps after the first ones."""
        run(RANKS + [self.program, "train", "--model", self.name, *self.form, "--dataset", "synthetic",
                     "--profile", "profile.json", "--plan", f"{schedule}.json", "--schedule", schedule,
                     *self.overlap, "--steps", self.steps, "--metrics", "metrics.json", "--quiet"],
            self.folder)
        with open(os.path.join(self.folder, "metrics.json")) as file:
            lines = [json.loads(line) for line in file]
        return [line["seconds"] for line in lines if "step" in line][WARM_UP:]

    def turn(self, schedule, jobs):
        """Returns the ratio of the schedule's median step to 1f1b's."""
        pairs = [(self.steps_s(schedule), self.steps_s("1f1b")) for _ in range(jobs)]
        ours, theirs = (statistics.median(sum(side, [])) for side in zip(*pairs))
        return ours / theirs


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--schedules", nargs="+", default=SCHEDULES)
    parser.add_argument("--overlap-steps", choices=["on", "off"], default="off")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()
    if os.geteuid() == 0:
        os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    worst = 0
    print("ratios to 1f1b's step")
    print(f"{'model':18} {'schedule':12} {'predicted':>10} {'measured':>10} {'off':>7}"
          f" {'lowest':>7} {'highest':>7}")
    for name in options.models:
        with tempfile.TemporaryDirectory() as folder:
            model = Model(options, name, folder)
            base_s = model.predicted_s("1f1b")
            for schedule in options.schedules:
                predicted = model.predicted_s(schedule) / base_s
                turns = sorted(model.turn(schedule, options.jobs) for _ in range(options.rounds))
                measured = statistics.median(turns)
                off = measured / predicted - 1
                worst = max(worst, abs(off))
                print(f"{name:18} {schedule:12} {predicted:10.3f} {measured:10.3f} {off:+7.1%}"
                      f" {turns[0]:7.3f} {turns[-1]:7.3f}", flush=True)
    sys.exit(worst > ALLOWED)


main()
