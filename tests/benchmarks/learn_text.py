#!/usr/bin/env python3
"""Trains a small GPT on a text, ours and PyTorch's, on the same batches, and compares what both have learned.

    tests/benchmarks/learn_text.py PROGRAM FOLDER --text FILE [--model gpt_nano] [--steps 2000] [--batch 12]

PROGRAM is build/antichain, and FILE some megabytes of text (Debian: `bible -p /usr/lib -l72
"gen1:1-rev22:21"` of the packages bible-kjv and bible-kjv-text). Both sides start from the same weights
(export), see the same rows of bytes in the same order (data batches), and make AdamW steps by the recipe of
nanoGPT: betas 0.9 and 0.99, decay 0.1 of matrices alone, gradients clipped to a norm of 1, the rates that the
log of our run has. Both run on one thread in float32, without dropout. The validation loss is the mean over
all bytes of the last tenth of the text. FOLDER/curves.svg shows both losses, each the mean of 20 steps. It
needs torch, numpy, h5py and matplotlib.
"""
import argparse
import json
import pathlib
import sys
import time

import h5py
import matplotlib
import numpy
import torch
from torch.nn import functional

from commands import call
from gpt2 import Gpt2

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "golden"))
from tensor_file import read  # noqa: E402

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

SIZES = {"gpt_nano": (4, 4, 128, 256, 64), "gpt_baby": (6, 6, 384, 256, 256)}  # as Gpt2 takes them


def validation_loss(net, tokens, length):
    whole = (len(tokens) - 1) // length * length
    x, y = tokens[:whole].view(-1, length), tokens[1:whole + 1].view(-1, length)
    total = 0.0
    with torch.no_grad():
        for rows, labels in zip(x.split(64), y.split(64)):
            total += functional.cross_entropy(net(rows).flatten(0, 1), labels.flatten(), reduction="sum").item()
    return total / whole


def by_pytorch(args, folder, rates):
    torch.set_num_threads(1)
    net = Gpt2(*SIZES[args.model])
    net.load(read(folder / "start.safetensors"))
    groups = [{"params": [w for w in net.parameters() if w.dim() > 1], "weight_decay": 0.1},
              {"params": [w for w in net.parameters() if w.dim() < 2], "weight_decay": 0}]
    optimiser = torch.optim.AdamW(groups, betas=(0.9, 0.99))
    batches = read(folder / "batches.safetensors")
    losses, begin = [], time.perf_counter()
    for rate, tokens, labels in zip(rates, batches["tokens"].split(args.batch), batches["labels"].split(args.batch)):
        for group in optimiser.param_groups:
            group["lr"] = rate
        optimiser.zero_grad()
        loss = functional.cross_entropy(net(tokens).flatten(0, 1), labels.flatten(), ignore_index=-1)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1)
        optimiser.step()
        losses.append(loss.item())
    seconds = time.perf_counter() - begin
    with h5py.File(folder / "text.h5") as file:
        test = torch.from_numpy(numpy.array(file["test/tokens"]).astype(numpy.int64))
    return losses, validation_loss(net, test, SIZES[args.model][-1]), seconds


def by_antichain(args, folder):
    length = SIZES[args.model][-1]
    train = ["--model", args.model, "--dataset", f"hdf5:{folder}/text.h5", "--batch", args.batch, "--seed", 1]
    call(args.program, "data", "tokens", "--text", args.text, "--out", folder / "text.h5")
    call(args.program, "export", "--model", args.model, "--seed", 1, "--out", folder / "start.safetensors")
    call(args.program, "data", "batches", *train[2:], "--sequence", length, "--steps", args.steps, "--out",
         folder / "batches.safetensors")
    begin = time.perf_counter()
    call(args.program, "train", *train, "--local", args.ranks, "--microbatches", args.microbatches, "--steps", args.steps,
         "--evaluate-every", args.steps, "--init", folder / "start.safetensors", "--dropout", 0,
         "--metrics", folder / "metrics.json")
    seconds = time.perf_counter() - begin
    lines = [json.loads(line) for line in (folder / "metrics.json").read_text().splitlines()]
    steps = [line for line in lines if "loss" in line and "rate" in line]
    return [line["loss"] for line in steps], [line["rate"] for line in steps], \
        [line["test_loss"] for line in lines if line.get("test_loss") is not None][-1], seconds


def draw(file, ours, theirs):
    figure, axes = pyplot.subplots(figsize=(6.4, 3.2))
    kernel = numpy.ones(20) / 20
    for values, label, style in ((theirs, "PyTorch", "-"), (ours, "Antichain", "--")):
        axes.plot(range(20, len(values) + 1), numpy.convolve(values, kernel, "valid"), style, label=label)
    axes.set(xlabel="step", ylabel="loss of a byte")
    axes.legend()
    figure.tight_layout()
    figure.savefig(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--text", required=True)
    parser.add_argument("--model", default="gpt_nano", choices=SIZES)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=12)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--microbatches", type=int, default=1)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    ours, rates, our_test, our_seconds = by_antichain(args, args.folder)
    theirs, their_test, their_seconds = by_pytorch(args, args.folder, rates)
    if args.steps > 20:
        draw(args.folder / "curves.svg", ours, theirs)
    print(f"{args.model}, {args.steps} steps of {args.batch} rows, {args.text}; PyTorch {torch.__version__}")
    print("step   antichain  PyTorch   (mean loss of the ten steps before)")
    for step in sorted({1, *range(args.steps // 10, args.steps + 1, max(1, args.steps // 10))}):
        means = [numpy.mean(values[max(0, step - 10):step]) for values in (ours, theirs)]
        print(f"{step:5d}  {means[0]:9.4f}  {means[1]:7.4f}")
    print(f"validation  {our_test:.4f}  {their_test:.4f}  difference {our_test - their_test:+.4f}")
    print(f"seconds of the process {our_seconds:.1f}, of PyTorch's steps {their_seconds:.1f}")
    if abs(our_test - their_test) > 0.02:
        sys.exit("FAILED: the validation losses differ by more than 0.02")


if __name__ == "__main__":
    main()
