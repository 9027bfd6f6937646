#!/usr/bin/env python3
"""Lists what a forward and a backward of a network launch on a GPU in bf16, with the bytes that each kind of
kernel moves and the time that this is estimated to take. Nothing runs on a GPU: the counts follow the code of
layers/cuda. The network is that of `antichain info` on the CPU, but with the GPU's reorders instead of the
CPU's: images go to NHWC in bf16, and logits to float32.

    tests/gpu/launches.py PROGRAM [--models resnet18 resnet50] [--microbatch 128]

A kernel takes the largest of: bytes over the memory's rate (the second-level cache's rate where the bytes fit
into it), operations over the tensor cores' rate, and what any kernel takes; then comes the gap to the next
one. The rates are an H200's as an audit took them.
"""
import argparse, collections, json, subprocess, sys

MEMORY, CACHE, CACHE_BYTES = 3.9e12 * 0.85, 6.0e12 * 0.85, 40e6  # bytes/s, of what passes of ours reach
FLOPS = 450e12
LEAST_US, GAP_US = 1.8, 1.0
FOLD_US = 3.5

Row = collections.namedtuple("Row", "launches bytes us")


class Listing:
    def __init__(self):
        self.rows = {"forward": {}, "backward": {}}

    def add(self, half, kind, moved, flops=0, least_us=LEAST_US, launches=1):
        rate_of_bytes = CACHE if moved < CACHE_BYTES else MEMORY
        us = max(least_us, 1e6 * moved / rate_of_bytes, 1e6 * flops / FLOPS) + GAP_US
        before = self.rows[half].get(kind, Row(0, 0, 0))
        self.rows[half][kind] = Row(before.launches + launches, before.bytes + moved,
                                    before.us + us * launches)


def convolution(listing, flops, x, y, w, needs_dx, is_product):
    """x, y and w count numbers."""
    listing.add("forward", "convolution", 2 * (x + y + w), flops)
    if needs_dx:
        listing.add("backward", "convolution, input gradient", 2 * (x + y + w), flops)
    kind = "convolution, weight gradient"
    if is_product:
        listing.add("backward", kind, 2 * (x + y) + 4 * w, flops)
    else:
        listing.add("backward", kind, 2 * (x + y + w), flops)
        listing.add("backward", "widen a weight gradient", 6 * w)


def batch_norm(listing, y, adds, relu, dy_terms):
    listing.add("forward", "batch norm, sums", 2 * y)
    listing.add("forward", "batch norm, fold", 0, least_us=FOLD_US)
    listing.add("forward", "batch norm, normalise", 2 * y * (3 if adds else 2))
    listing.add("backward", "batch norm, sums", 2 * y * ((3 if adds and relu else 1) + dy_terms))
    listing.add("backward", "batch norm, fold", 0, least_us=FOLD_US)
    listing.add("backward", "batch norm, input gradient", 2 * y * 3)


def network(program, model):
    said = subprocess.run([program, "info", "--model", model, "--json", "-"], check=True, capture_output=True)
    return json.loads(said.stdout)["nodes"]


def listing_of(nodes, microbatch):
    listing, by_id = Listing(), {node["id"]: node for node in nodes}
    numbers = {node["id"]: node["output_bytes"] // 4 * microbatch for node in nodes}
    consumers = collections.Counter(i for node in nodes for i in node["inputs"] if node["needs_gradient"])
    convolved = {i for node in nodes if node["op"] == "conv2d" for i in node["inputs"]}
    for images in (i for i in convolved if by_id[i]["role"] == "input"):
        listing.add("forward", "reorder and flatten", 6 * numbers[images])
    for node in nodes:
        if node["role"] == "input" or node["op"] == "reorder":
            continue
        x, y, w = numbers[node["inputs"][0]], numbers[node["id"]], node["param_bytes"] // 4
        adds_terms = False  # of its output's gradient, in its own backward
        op, needs_dx = node["op"], by_id[node["inputs"][0]]["needs_gradient"]
        if op == "conv2d":
            image = y // microbatch
            taps = node["flops"] // 2 // image  # numbers of one filter
            pixels = image // (w // taps)
            is_product = x // microbatch == taps * pixels  # one pixel of one filter, stride 1
            convolution(listing, node["flops"] * microbatch, x, y, w, needs_dx, is_product)
        elif op == "batch_norm":
            relu = any("relu" in name for name in node.get("absorbed", []))
            adds = len(node["inputs"]) > 1
            adds_terms = adds and relu and consumers[node["id"]] == 2
            batch_norm(listing, y, adds, relu, 2 if adds_terms else 1)
        elif op == "linear":  # a product and its bias; the bias's sums and their fold, and two products
            listing.add("forward", "linear layer and loss", 2 * (x + y + w), launches=2)
            listing.add("backward", "linear layer and loss", 2 * (x + y + w), launches=4)
        elif op == "softmax_cross_entropy":  # of logits in float32
            for half, launches in (("forward", 2), ("backward", 1)):
                listing.add(half, "reorder and flatten", 6 * x)
                listing.add(half, "linear layer and loss", 4 * (x + y), launches=launches)
        else:
            kind = "reorder and flatten" if op == "flatten" else "pooling"
            listing.add("forward", kind, 2 * (x + y))
            listing.add("backward", kind, 2 * (x + y))
        if consumers[node["id"]] > 1 and not adds_terms:
            listing.add("backward", "add of gradients", 6 * y, launches=consumers[node["id"]] - 1)
    for half in listing.rows:
        listing.add(half, "look for numbers that are none", 0)
    return listing


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--models", nargs="+", default=["resnet18", "resnet50"])
    parser.add_argument("--microbatch", type=int, default=128)
    args = parser.parse_args()
    all_of = {m: listing_of(network(args.program, m), args.microbatch) for m in args.models}
    print("| pass | kernels |" + "".join(f" {m}: launches | MB | us |" for m in args.models))
    print("|---|---|" + "---|---|---|" * len(args.models))
    for half in ("forward", "backward"):
        kinds = {kind: None for listing in all_of.values() for kind in listing.rows[half]}
        for listing in all_of.values():
            listing.rows[half]["all"] = Row(*map(sum, zip(*listing.rows[half].values())))
        for kind in [*kinds, "all"]:
            cells = [all_of[m].rows[half].get(kind, Row(0, 0, 0)) for m in args.models]
            text = "".join(f" {c.launches} | {c.bytes / 1e6:.0f} | {c.us:.0f} |" for c in cells)
            print(f"| {half} | {kind} |{text}")


if __name__ == "__main__":
    sys.exit(main())
