#!/usr/bin/env python3
"""Measures the memory of a process that trains a language model, beside what was predicted, and how a step's
tensors grow with the length of a sequence.

    tests/benchmarks/language_memory.py PROGRAM FOLDER --text FILE [--models gpt_nano llama gpt2]
        [--batches 1 2 4] [--sequences 256 512 1024 2048]

PROGRAM is build/antichain, and FILE any text of some hundred thousand bytes. Each figure is that of a process
of its own, which trains two steps on one rank and in one micro-batch, gpt2 on 256 tokens. `predicted` is what
`train` says before it allocates anything, and `measured` is by how much the largest resident set is above
that before profiling. The last table is of llama with a batch of 1: a step's tensors besides weights and the
optimiser's state.
"""
import argparse
import json
import pathlib

from commands import call


def trained(args, model, batch, *more):
    """Returns what --json says of a run. The bytes of the text are words among those that the model has."""
    result = args.folder / "result.json"
    words = ["--vocabulary", 50257, "--sequence", 256] if model == "gpt2" else []
    call(args.program, "train", "--model", model, "--dataset", f"hdf5:{args.folder}/text.h5", "--batch", batch,
         "--microbatches", 1, "--local", 1, "--steps", 2, "--json", result, *words, *more)
    return json.loads(result.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--text", required=True)
    parser.add_argument("--models", nargs="*", default=["gpt_nano", "llama", "gpt2"])
    parser.add_argument("--batches", nargs="*", type=int, default=[1, 2, 4])
    parser.add_argument("--sequences", nargs="*", type=int, default=[256, 512, 1024, 2048])
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    call(args.program, "data", "tokens", "--text", args.text, "--out", args.folder / "text.h5")
    print("| model | batch | predicted MiB | measured MiB | predicted / measured |\n|---|---|---|---|---|")
    for model in args.models:
        for batch in args.batches:
            (memory,) = trained(args, model, batch)["process_memory"]
            predicted, measured = (memory[key] / 2**20 for key in ("estimated_bytes", "measured_bytes"))
            row = f"| {model} | {batch} | {predicted:.0f} | {measured:.0f} | {predicted / measured:.3f} |"
            print(row, flush=True)
    print("\n| tokens | MiB of a step's tensors | of the first |\n|---|---|---|")
    first = None
    for length in args.sequences:
        mebibytes = trained(args, "llama", 1, "--sequence", length)["rank_0_memory_bytes"] / 2**20
        first = first or mebibytes
        print(f"| {length} | {mebibytes:.1f} | {mebibytes / first:.2f} |", flush=True)


if __name__ == "__main__":
    main()
