#!/usr/bin/python3
"""Compares the training speed of transformers with PyTorch's, on one pinned core.

    tests/benchmarks/language_speed.py PROGRAM FOLDER --text FILE [--rows gpt2/64 gpt_nano …] [--rounds 3]
        [--python "python3" "other/python3"] [--bf16]

PROGRAM is build/antichain, and FILE any text of some megabytes. Each round starts a new process of ours, then
one of each Python, on rows of bytes (vit_tiny: on images). A step is forward, backward, AdamW and clipping at
norm 1, without dropout. Ours is `train --local 1` in one micro-batch, data loading included; PyTorch's data
lie in memory, and its attention is scaled_dot_product_attention where it has that. A figure is the median of
a process's steps without the first three, then the median of the rounds; the spread is that of the rounds'
ratios. `share` is ours as a share of the fastest layer's FLOP/s in the profile of the same run. --bf16
compares ours by --precision bf16 with torch.autocast.
"""
import argparse
import json
import math
import pathlib
import shlex
import statistics
import time

from commands import call
from ten_models import WARM_UP, network, run_alone

# layers, heads, width, vocabulary, batch, length; steps of a process
GPT = {
    "gpt2/256": (12, 12, 768, 50257, 4, 256, 5),
    "gpt2/64": (12, 12, 768, 50257, 4, 64, 6),
    "gpt_nano/64": (4, 4, 128, 256, 12, 64, 60),
    "gpt_baby/256": (6, 6, 384, 256, 8, 256, 10),
}
ROWS = {**GPT, "vit_tiny": (32, 15)}  # batch; steps


def pytorch(row, bf16):
    """Prints PyTorch's version and the samples/s of one process."""
    import torch
    if row in GPT:
        from gpt2 import Gpt2
        *sizes, batch, length, steps = GPT[row]
        torch.set_num_threads(1)
        net = Gpt2(*sizes, length)
        x, y = torch.randint(0, 256, (2, batch, length))
    else:
        batch, steps = ROWS[row]
        net = network(row)
        x, y = torch.randn(batch, 3, 32, 32), torch.randint(0, 10, (batch,))
    optimiser = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.1)
    seconds = []
    for _ in range(steps):
        start = time.perf_counter()
        optimiser.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
            logits = net(x)
        torch.nn.functional.cross_entropy(logits.float().flatten(0, -2), y.flatten()).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1)
        optimiser.step()
        seconds.append(time.perf_counter() - start)
    print(torch.__version__, batch / statistics.median(seconds[WARM_UP:]))


class Ours:
    def __init__(self, args, row):
        self.core, self.metrics = args.core, args.folder / "metrics.json"
        if row in GPT:
            layers, heads, width, words, batch, length, steps = GPT[row]
            data = ["--dataset", f"hdf5:{args.folder}/text.h5", "--sequence", length, "--vocabulary", words]
        else:
            (batch, steps), data = ROWS[row], ["--dataset", "synthetic"]
        words = ["--model", row.split("/")[0], *data, "--batch", batch, "--microbatches", 1, "--steps", steps,
                 "--optimiser", "adamw", "--clip-norm", 1, "--dropout", 0, "--local", 1]
        words += ["--profile-cache", args.folder, "--metrics", self.metrics]
        self.command = [args.program, "train", *map(str, words), *(["--precision", "bf16"] if args.bf16 else [])]

    def measure(self):
        run_alone(self.command, self.core)
        lines = [json.loads(line) for line in self.metrics.read_text().splitlines()]
        rates = [line[key] for line in lines for key in ("images_per_s", "sequences_per_s") if key in line]
        self.share = lines[-1]["share_of_fastest_layer"]
        return statistics.median(rates[WARM_UP:])


class Theirs:
    def __init__(self, args, row, python):
        self.core = args.core
        self.command = [*shlex.split(python), __file__, args.program, args.folder, "--text", args.text, "--pytorch", row,
                        *(["--bf16"] if args.bf16 else [])]

    def measure(self):
        out, _ = run_alone([*map(str, self.command)], self.core)
        self.version, rate = out.split()
        return float(rate)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--text", required=True)
    parser.add_argument("--rows", nargs="*", default=ROWS, choices=ROWS, metavar="ROW")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--python", nargs="*", default=["python3"], help="commands, each a Python that has torch")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--pytorch", choices=ROWS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.pytorch:
        return pytorch(args.pytorch, args.bf16)
    args.folder.mkdir(parents=True, exist_ok=True)
    call(args.program, "data", "tokens", "--text", args.text, "--out", args.folder / "text.h5")
    print("| network/tokens | samples/s | share | PyTorch | its samples/s | ratio | rounds |\n|---|---|---|---|---|---|---|")
    lowest = {}
    for row in args.rows:
        ours, *theirs = Ours(args, row), *(Theirs(args, row, python) for python in args.python)
        rounds = [[side.measure() for side in (ours, *theirs)] for _ in range(args.rounds)]
        rate, *rates = map(statistics.median, zip(*rounds))
        for i, (side, peer) in enumerate(zip(theirs, rates), 1):
            ratios = [each[0] / each[i] for each in rounds]
            lowest[row] = min(lowest.get(row, math.inf), rate / peer)
            print(f"| {row} | {rate:.2f} | {ours.share:.2f} | {side.version} | {peer:.2f} | {rate / peer:.2f} | "
                  f"{min(ratios):.2f} to {max(ratios):.2f} |", flush=True)
    print(f"geometric mean of the lowest {statistics.geometric_mean(lowest.values()):.2f}")


if __name__ == "__main__":
    main()
