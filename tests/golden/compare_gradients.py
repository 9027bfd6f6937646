#!/usr/bin/env python3
"""Compares the errors of our logits, loss and gradients with those of PyTorch's float32.

PyTorch's float64 counts as right.

    python3 tests/golden/compare_gradients.py PROGRAM [FORM/MODEL ...]

PROGRAM is build/antichain. The networks, their weights and batches are those of gradients.txt: no number lies
near a kink (kinks.py), which is checked again here, so that rounding alone is compared. PyTorch computes
logits, loss and gradients in float64 and in float32, on one thread, and `antichain gradients` from the same
files. Per tensor the ratio is

    |ours - float64| / |PyTorch-float32 - float64|

in the L2 norm, as root mean squares over the batches. The divisor is at least what rounding the right answer
to float32 costs. The ratio may be 2, and 4 where a convolution of the network uses Winograd: then the logits
pass through it, and with them every gradient. Which convolutions use it is a matter of shape and of the
processor (winograd() here, layers/cpu/winograd.cpp there).

The script prints one line a network: the allowed ratio, that of logits and loss, and the largest and the
median over all gradients. It ends with 1 when one is above, and with 77 where PyTorch is missing. Without
names it takes two networks that need seconds, and with ANTICHAIN_LARGE_TESTS=1 all of gradients.txt, which
takes half an hour.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

try:
    import torch
    import torchvision
except ImportError:
    print("skipped: needs python3-torch and python3-torchvision")
    sys.exit(77)

import gradients
import kinks
import tensor_file

QUICK = [("cifar", "squeezenet1_0"), ("imagenet", "mobilenet_v2")]


def winograd(net, batch):
    """Whether any pass of any convolution may use it."""
    if "avx2" not in pathlib.Path("/proc/cpuinfo").read_text():
        return False
    found = []

    def look(conv, inputs, output):
        n, channels, h, w = output.shape
        of_group = [inputs[0].shape[1] // conv.groups, channels // conv.groups]
        fewer = min(of_group)
        tiles = n * ((h + 3) // 4) * ((w + 3) // 4)
        found.append(conv.kernel_size == (3, 3) and conv.stride == (1, 1) and conv.dilation == (1, 1)
                     and max(conv.padding) <= 2 and fewer >= 16
                     and (conv.groups == 1 or all(count % 16 == 0 for count in of_group))
                     and (5.5 + 50 / fewer) * tiles + 12 < n * h * w * (3 if h * w <= 4 else 1))

    hooks = [m.register_forward_hook(look) for m in net.modules() if isinstance(m, torch.nn.Conv2d)]
    with torch.no_grad():
        net(batch)
    for hook in hooks:
        hook.remove()
    return any(found)


def squared_error(x, right):
    return ((x.double() - right) ** 2).sum().item()


def of_torch(net, batch):
    tensors = gradients.results(net, batch)
    return tensors | {"loss": tensors.pop("losses").mean()}


def compare_batch(program, model, form, nets, batch, folder):
    """{tensor: (ours, theirs)}: squared errors, each relative to the right tensor's square."""
    files = {name: f"{folder}/{name}.safetensors" for name in ("weights", "images", "out")}
    tensor_file.write(files["weights"], nets[1].state_dict())
    tensor_file.write(files["images"], {"images": batch, "labels": torch.arange(len(batch))})
    words = [program, "gradients", "--model", model, "--form", form]
    words += [word for name, file in files.items() for word in (f"--{name}", file)]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    ours = tensor_file.read(files["out"])
    right, single = of_torch(nets[0], batch.double()), of_torch(nets[1], batch)
    if set(ours) != set(right):
        sys.exit(f"{model}: other names: {sorted(set(ours) ^ set(right))[:5]}")
    errors = {}
    for name, r in right.items():
        least = squared_error(r.float(), r)
        errors[name] = squared_error(ours[name], r), max(squared_error(single[name], r), least)
    # A batch counts as much as any other, whatever the size of its gradient.
    whole = sum((r**2).sum().item() for name, r in right.items() if name not in ("logits", "loss"))
    return {name: (a / whole, b / whole) for name, (a, b) in errors.items()}


def compare(program, form, model, text):
    words = text.split("\n")[0].split()
    side, shift = int(words[3]), float(words[4])
    nets, sums, allowed = gradients.build(model, form, shift), {}, 2
    with tempfile.TemporaryDirectory() as folder:
        for draw in words[6:]:
            batch = gradients.images([int(k) for k in draw.split("+")], side)
            if not kinks.same_sides(*nets, batch):
                sys.exit(f"{form} {model}: PyTorch's float32 and float64 are on different sides of a kink in draw {draw}")
            allowed = 4 if winograd(nets[1], batch) else 2
            for name, pair in compare_batch(program, model, form, nets, batch, folder).items():
                sums[name] = [a + b for a, b in zip(sums.get(name, (0, 0)), pair)]
    ratios = {name: (a / b) ** 0.5 if b else float(a > 0) for name, (a, b) in sums.items()}
    logits, loss = ratios.pop("logits"), ratios.pop("loss")
    worst = max(ratios, key=ratios.get)
    print(f"{form:9}{model:15}{allowed:8}{logits:8.2f}{loss:8.2f}{ratios[worst]:9.2f}"
          f"{statistics.median(ratios.values()):8.2f}  {worst}", flush=True)
    above = [f"{name} {ratio:.1f}" for name, ratio in ratios.items() if ratio > allowed]
    for name in above if len(above) > 1 else []:
        print(f"  above {allowed}: {name}")
    return max(logits, loss, ratios[worst]) <= allowed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("networks", nargs="*", help="FORM/MODEL")
    args = parser.parse_args()
    torch.set_num_threads(1)
    sections = gradients.recorded()
    all_or_quick = sections if os.environ.get("ANTICHAIN_LARGE_TESTS") else QUICK
    wanted = [tuple(name.split("/")) for name in args.networks] or list(all_or_quick)
    print(f"{'form':9}{'model':15}{'allowed':>8}{'logits':>8}{'loss':>8}{'largest':>9}{'median':>8}  the largest is of")
    if not all([compare(args.program, *key, sections[key]) for key in wanted]):
        sys.exit("above what is allowed")


if __name__ == "__main__":
    main()
