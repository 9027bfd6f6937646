#!/usr/bin/env python3
"""Finds which part is at fault where training on a GPU goes wrong. A small training is run as it is, and with
one part at a time left out.

    tests/gpu/diagnose.py PROGRAM [--mpirun MPIRUN] [--sanitizer COMPUTE_SANITIZER] [--limit SECONDS] [--all]
                          [--networks resnet20:bf16 …] [--tests TEST_GPU TEST_GPU_TRANSPORT --logs FOLDER]

  trainings   losses beside the CPU's, final weights beside those of the run as it is, whose bits most
              variants must have; where a network is right as it is, only those with the same bits are run
              (--all: every one)
  gradients   of one batch in float32, node by node beside the CPU's: the last node that is wrong is where it
              begins
  tests       those that the logs name as failed, each in a process of its own, as it is and with parts left
              out
  sanitizer   compute-sanitizer over a training of three steps

The last lines say what follows. The exit code is 0 where nothing is wrong, and 77 where there is no device.
"""
import argparse, os, sys, tempfile

sys.dont_write_bytecode = True
from diagnosis.gradients import gradients
from diagnosis.runs import Runs, last_line
from diagnosis.sanitizer import sanitizer
from diagnosis.tests import tests_alone
from diagnosis.trainings import Trainings
from diagnosis.variants import NETWORKS


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--mpirun")
    parser.add_argument("--sanitizer")
    parser.add_argument("--tests", nargs="+", default=[])
    parser.add_argument("--logs")
    parser.add_argument("--limit", type=float, default=float(os.environ.get("MOST", 310)) - 10, help="seconds")
    parser.add_argument("--networks", nargs="+", default=NETWORKS, metavar="MODEL:PRECISION", type=lambda text: tuple(text.split(":")))
    parser.add_argument("--all", action="store_true")
    args = parser.parse_args()
    runs = Runs(args.limit)
    runs.until(0.5)
    code, said = runs.run([args.program, "info", "--model", "resnet20", "--device", "cuda"])
    if code != 0:
        print(f"skipped, needs a CUDA device: {last_line(said)}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        trainings = Trainings(args, runs, folder)
        trainings.all()
        wrong = [v for v in trainings.verdicts if not v.endswith(": right")]
        if wrong or args.all:
            print()
            runs.until(0.65)
            wrong += gradients(args, runs, folder)
        if args.tests:
            runs.until(0.85)
            wrong += tests_alone(args, runs)
        if wrong or args.all:
            runs.until(1)
            wrong += sanitizer(args, runs)
    print("\nwhat follows")
    for line in [v for v in trainings.verdicts if v.endswith(": right")] + wrong:
        print(f"  {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
