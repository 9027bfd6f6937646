#!/usr/bin/env python3
"""Tells in two minutes whether the rest is worth its time: versions, cuDNN's engines beside those expected
for an H200, an operator of each type in three precisions, and 40 steps of ResNet-18 recorded as graphs and
not, which must have the same bits.

    tests/gpu/smoke.py PROGRAM --tests TEST_GPU --plans LIST [--json FILE]

The exit code is 0 where all is right, and 77 where there is no device. Engines other than expected are told,
and are no failure: the list is of a device that was only described.
"""
import argparse, json, os, re, statistics, sys, tempfile

sys.dont_write_bytecode = True
from diagnosis.runs import Runs, last_line

# There is one of each type of operator, by the names in tests/layers/op_cases.cpp.
OPERATORS = ("conv_3x3_wide conv_1x1_stride_2 conv_groups_32_of_4 conv_relu_odd batch_norm_add_relu_odd relu_16 max_pool_3_pad average_pool_same "
             "global_pool_32 adaptive_pool_uneven linear_relu_odd add_16 concat_uneven flatten_image dropout_image loss_smoothed").split()
TRAININGS = [("resnet18", 128, 40, {}), ("resnet18", 128, 40, {"ANTICHAIN_CUDA_GRAPHS": "0"}), ("resnet18", 32, 3, {}), ("resnet50", 128, 3, {}),
             ("resnet50", 32, 3, {})]


def train(runs, program, folder, model, batch, steps, environment):
    """Returns what it said, and (hash of the weights, images/s), which is None where it failed."""
    whole, metrics = os.path.join(folder, "run.json"), os.path.join(folder, "metrics")
    code, said = runs.run([program, "train", "--device", "cuda", "--precision", "bf16", "--local", "1", "--method", "uniform", "--model", model,
                           "--batch", str(batch), "--microbatches", "1", "--steps", str(steps), "--lr", "0.01", "--lr-schedule", "constant",
                           "--dataset", "synthetic", "--profile-cache", "none", "--json", whole, "--metrics", metrics],
                          {"ANTICHAIN_CUDA_PLANS": "1", **environment})
    if code != 0:
        print(f"FAILED  {model} of {batch} images, {environment or 'as it is'}: {last_line(said)}", flush=True)
        return said, None
    with open(metrics) as lines:
        trained = [line for line in map(json.loads, lines) if "images_per_s" in line]
    rates = [step["images_per_s"] for step in trained]
    with open(whole) as text:
        return said, (json.load(text)["state"], statistics.median(rates[len(rates) // 4:] or [0]))


def said_whole(model, words):
    """Whether a training said nothing of a step that can't be recorded; else what it said is printed."""
    lines = re.findall(r".*can't be recorded.*", words)
    for line in lines:
        print(f"FAILED  {model}: {line}", flush=True)
    return not lines


def plans_in(said):
    """Returns the lines of ANTICHAIN_CUDA_PLANS=1, without the engines' notes."""
    return {m.group(1) for m in re.finditer(r"^antichain: plan (.* is (?:engine \d+|not to be had))", said, re.M)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--tests", required=True)
    parser.add_argument("--plans", required=True)
    parser.add_argument("--json")
    args = parser.parse_args()
    runs = Runs(float(os.environ.get("MOST", 120)) - 5)
    runs.until(1)
    code, said = runs.run([args.program, "info", "--model", "resnet20", "--device", "cuda"], {"ANTICHAIN_CUDA_PLANS": "1"})
    if code != 0:
        print(f"skipped, needs a CUDA device: {last_line(said)}")
        return 77
    print("\n".join(line for line in said.splitlines() if "versions" in line), flush=True)
    right, figures = True, {}

    with tempfile.TemporaryDirectory() as folder:
        said, found = "", []
        for model, batch, steps, environment in TRAININGS:
            words, result = train(runs, args.program, folder, model, batch, steps, environment)
            said += words
            found.append(result)
            right = said_whole(model, words) and right
    right = right and all(found)
    if found[0] and found[1]:
        (graphs, fast), (plain, slow) = found[0], found[1]
        print(f"{'ok     ' if graphs == plain else 'FAILED '} resnet18: state {graphs} recorded, {plain} kernel by kernel; "
              f"{fast:.0f} images/s, {slow:.0f} images/s without graphs", flush=True)
        right = right and graphs == plain
        figures["resnet18 bf16 128 images/s"] = {"recorded": fast, "kernel by kernel": slow}

    with open(args.plans) as lines:
        expected = set(lines.read().splitlines())
    known = {line.split(" is ")[0] for line in expected}
    plans = {line for line in plans_in(said) if line.split(" is ")[0] in known}
    others = sorted(plans - expected)
    print(f"{len(plans & expected)} of {len(plans)} engines as expected for an H200")
    for line in others:
        print(f"  other than expected: {line}")
    figures["engines"] = {"as expected": len(plans & expected), "others": others}
    left_behind = re.findall(r"antichain: planning left .*", said)
    print("\n".join(sorted(set(left_behind))) or "planning left no CUDA error behind", flush=True)

    names = ":".join(f"*EngineMatchesReference/cuda_{kind}{name}" for name in OPERATORS for kind in ("", "tf32_", "bf16_"))
    code, said = runs.run([args.tests, "--gtest_brief=1", f"--gtest_filter={names}"])
    print(f"{'ok     ' if code == 0 else 'FAILED '} operators: {last_line(said)}", flush=True)
    print("\n".join(re.findall(r"\[  FAILED  \].*", said)))
    if args.json:
        with open(args.json, "w") as file:
            json.dump(figures, file, indent=1)
    return 0 if right and code == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
