#!/usr/bin/env python3
"""How exact are our logits, loss and gradients? PyTorch in float64 is right; PyTorch in float32 is the measure.

    python3 tests/golden/compare_gradients.py PROGRAM [MODEL ...] [--form cifar|imagenet|both] [--batch 4] [--batches 8]
                                              [--shift 0] [--limit 2]

PROGRAM is build/antichain. It draws the weights (export) and computes the gradients of a batch (gradients); PyTorch
loads those weights into the same network (networks.py, dropout off) and does so in float64 and in float32, on one
thread. Per tensor the ratio is |ours - float64| / |PyTorch-float32 - float64|, in the L2 norm, and never with less below
than rounding the right answer to float32 would give.

A number within rounding of a ReLU's kink falls on one side here and on the other there; then whole tensors differ by
far more than rounding, in PyTorch as in ours. So a tensor's ratio is the lower quartile over several batches: rounding
is in all of them, a kink that matters in some. How many batches had one (a ratio above 100 somewhere) is a column.
--shift X adds X to the biases of batch norm: with 3, one input of ReLU in a thousand is negative and kinks are rare.

One line a network: the ratio of the logits, the largest and the median over all gradients, the relative error of our
loss, and which tensor is the largest. Exits with 1 when a ratio is above --limit.
Needs python3-torch and python3-torchvision.
"""
import argparse
import json
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile

import numpy
import torch
from torch.nn import functional

import networks
from losses import CIFAR, IMAGENET

TYPES = {"F32": "<f4", "I64": "<i8"}


def read(file):
    """A safetensors file as {name: tensor}."""
    data = pathlib.Path(file).read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    tensors = {}
    for name, t in header.items():
        begin, end = (start + o for o in t["data_offsets"])
        tensors[name] = torch.from_numpy(numpy.frombuffer(data[begin:end], TYPES[t["dtype"]]).reshape(t["shape"]).copy())
    return tensors


def write(file, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        array = tensor.numpy()
        kind = "F32" if array.dtype == numpy.float32 else "I64"
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.astype(TYPES[kind]).tobytes()
    text = json.dumps(header).encode()
    pathlib.Path(file).write_bytes(struct.pack("<Q", len(text)) + text + data)


def theirs(model, form, aux, weights, images, labels, dtype):
    """{name: gradient}, and the logits and the loss."""
    net = networks.build(model, form, aux > 0)
    net.load_state_dict(weights)
    net = net.to(dtype).train()
    out = net(images.to(dtype))
    logits = out.logits if aux else out
    loss = functional.cross_entropy(logits, labels)
    if aux:
        loss = loss + aux * functional.cross_entropy(out.aux_logits, labels)
    loss.backward()
    tensors = {name: p.grad for name, p in net.named_parameters()}
    return {**tensors, "logits": logits.detach(), "loss": loss.detach()}


def ratio(ours, theirs32, right):
    error = lambda x: torch.linalg.vector_norm(x.double() - right).item()
    below = max(error(theirs32), error(right.float()))
    return error(ours) / below if below > 0 else float(error(ours) > 0)


def lower_quartile(values):
    return sorted(values)[(len(values) - 1) // 4]


def one_batch(run, model, form, side, aux, files, args, seed):
    """{tensor: ratio}, and the relative error of our loss."""
    network = ["--model", model, "--form", form, "--aux", str(aux)]
    weights, batch, out = files
    torch.manual_seed(seed)
    images, labels = torch.randn(args.batch, 3, side, side), torch.arange(args.batch) % 10
    write(batch, {"images": images, "labels": labels})
    run("gradients", *network, "--weights", weights, "--images", batch, "--out", out)
    ours, start = read(out), read(weights)
    right = theirs(model, form, aux, start, images, labels, torch.float64)
    single = theirs(model, form, aux, start, images, labels, torch.float32)
    if set(ours) != set(right):
        sys.exit(f"{model}: the gradients have other names: {sorted(set(ours) ^ set(right))[:5]}")
    loss = right.pop("loss").item()
    return {name: ratio(ours[name], single[name], right[name]) for name in right}, ours["loss"].item() / loss - 1


def shift_biases(file, shift):
    """Batch norm's."""
    tensors = read(file)
    for name in tensors:
        if name.endswith(".running_mean"):
            tensors[name.replace("running_mean", "bias")] += shift
    write(file, tensors)


def compare(args, model, form, folder):
    side = 32 if form == "cifar" else IMAGENET[model]
    aux = 0.4 if model == "inception_v3" and form == "cifar" else 0
    files = [f"{folder}/{name}.safetensors" for name in ("weights", "batch", "gradients")]
    run = lambda *words: subprocess.run([args.program, *words], check=True, stdout=subprocess.DEVNULL)
    run("export", "--model", model, "--form", form, "--aux", str(aux), "--seed", "1", "--out", files[0])
    shift_biases(files[0], args.shift)
    results = [one_batch(run, model, form, side, aux, files, args, seed) for seed in range(args.batches)]
    kinks = sum(max(ratios.values()) > 100 for ratios, _ in results)
    ratios = {name: lower_quartile([ratios[name] for ratios, _ in results]) for name in results[0][0]}
    logits, loss = ratios.pop("logits"), max(abs(error) for _, error in results)
    worst = max(ratios, key=ratios.get)
    print(f"{form:9}{model:15}{logits:8.2f}{ratios[worst]:8.2f}{statistics.median(ratios.values()):8.2f}{loss:9.0e}"
          f"{kinks:6}  {worst}", flush=True)
    return max(logits, ratios[worst])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("models", nargs="*", default=CIFAR)
    parser.add_argument("--form", choices=["cifar", "imagenet", "both"], default="cifar")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--shift", type=float, default=0)
    parser.add_argument("--limit", type=float, default=2)
    args = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'form':9}{'model':15}{'logits':>8}{'largest':>8}{'median':>8}{'loss':>9}{'kinks':>6}  the largest is of")
    above = []
    with tempfile.TemporaryDirectory() as folder:
        for form in ("cifar", "imagenet") if args.form == "both" else (args.form,):
            for model in args.models:
                if form == "imagenet" and model not in IMAGENET:
                    continue
                if compare(args, model, form, folder) > args.limit:
                    above.append(f"{form} {model}")
    if above:
        sys.exit(f"above {args.limit}: {', '.join(above)}")


if __name__ == "__main__":
    main()
