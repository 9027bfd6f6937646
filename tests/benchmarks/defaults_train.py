#!/usr/bin/python3
"""Tries whether the defaults train: each model by its own recipe, told nothing but the data.

    tests/benchmarks/defaults_train.py PROGRAM FOLDER [--data-dir D | --dataset synthetic]
        [--models resnet20 vgg16 …] [--steps 200] [--anew]

A model passes where the mean loss of its last 20 steps is at most 2.0 (2.2 for the three without batch norm),
and no step's loss is above 1.5 times the first one's. ln 10, the loss of a guess, is 2.303. The metrics of
finished models stay in FOLDER: the same command goes on with the others, unless --anew trains all of them.
The exit code is 1 where a model does not pass.
"""
import argparse, json, os, subprocess, sys, time

WITHOUT_BATCH_NORM = ("alexnet", "vgg16", "squeezenet1_0")
MODELS = (*WITHOUT_BATCH_NORM, "resnet20", "resnet32", "resnet56", "resnet18", "resnet50", "resnet101", "resnext50", "resnext101",
          "densenet121", "inception_v3", "mobilenet_v2", "mobilenet_v3_large", "efficientnet_b0", "convnext_tiny")
LAST = 20  # steps
MOST_OVER_FIRST = 1.5


def losses(metrics):
    """Returns the losses by step, or as many as there are."""
    if not os.path.exists(metrics):
        return []
    with open(metrics) as file:
        lines = [json.loads(line) for line in file]
    return [line["loss"] for line in lines if "step" in line and "loss" in line]


def train(args, model, metrics):
    """Returns the seconds that it took, or None where it had been trained before."""
    if len(losses(metrics)) == args.steps and not args.anew:
        return None
    data = ["--dataset", args.dataset] if args.dataset else ["--data-dir", args.data_dir] if args.data_dir else []
    start = time.monotonic()
    child = subprocess.run([args.program, "train", "--model", model, "--steps", str(args.steps), "--metrics", metrics, *data],
                           capture_output=True, text=True)
    if child.returncode:
        sys.exit(f"{model} ended with {child.returncode}:\n{child.stderr}")
    return time.monotonic() - start


def judge(model, loss):
    limit = 2.2 if model in WITHOUT_BATCH_NORM else 2.0
    mean = sum(loss[-LAST:]) / LAST
    return mean, mean <= limit and max(loss) <= MOST_OVER_FIRST * loss[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder")
    parser.add_argument("--data-dir", default="")
    parser.add_argument("--dataset", default="")
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--anew", action="store_true")
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    print("| model | first | largest (step) | mean of the last 20 | passes | seconds |\n|---|---|---|---|---|---|")
    passed = True
    for model in args.models:
        metrics = os.path.join(args.folder, model + ".jsonl")
        seconds = train(args, model, metrics)
        loss = losses(metrics)
        mean, good = judge(model, loss)
        passed &= good
        took = "before" if seconds is None else f"{seconds:.0f}"
        largest = max(loss)
        print(f"| {model} | {loss[0]:.3f} | {largest:.3f} ({loss.index(largest) + 1}) | {mean:.3f} | {'yes' if good else 'NO'} | {took} |",
              flush=True)
    sys.exit(not passed)


if __name__ == "__main__":
    main()
