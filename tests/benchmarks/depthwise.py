#!/usr/bin/python3
"""Compares depthwise convolutions with PyTorch on one pinned core: how many times as fast each pass is.

    tests/benchmarks/depthwise.py build/tests/benchmarks/convolution_times [--rounds 3] [--seconds 0.1]
    [--bf16] [--networks mobilenet_v2 efficientnet_b0 convnext_tiny] [--forms cifar imagenet]

The shapes are those of the networks' depthwise convolutions at batch 32. For each shape and round the two
take turns (A B A B …), each in a process of its own. A time is the thread's own processor time of the fastest
of a turn's calls, and a ratio is that of the medians of the rounds. PyTorch's tensors are N x C x H x W, as
its networks have them; ours have the engine's layout, in which they flow from operator to operator. --bf16
stores both sides' activations in bf16. Denormal numbers are computed as such on both sides. The script needs
python3-torch.
"""
import argparse, math, statistics, sys, time

from side import Side

# (channels, size, kernel, stride); the padding is half the kernel.
SHAPES = {
    ("mobilenet_v2", "imagenet"): [(32, 112, 3, 1), (96, 112, 3, 2), (144, 56, 3, 1), (144, 56, 3, 2), (192, 28, 3, 1),
                                   (192, 28, 3, 2), (384, 14, 3, 1), (576, 14, 3, 1), (576, 14, 3, 2), (960, 7, 3, 1)],
    ("mobilenet_v2", "cifar"): [(32, 32, 3, 1), (96, 32, 3, 1), (144, 32, 3, 2), (192, 16, 3, 1), (192, 16, 3, 2),
                                (384, 8, 3, 1), (576, 8, 3, 2), (960, 4, 3, 1), (576, 2, 3, 2), (960, 1, 3, 1)],
    ("efficientnet_b0", "imagenet"): [(144, 56, 5, 2), (240, 28, 5, 1), (240, 28, 3, 2), (480, 14, 3, 1), (480, 14, 5, 1),
                                      (672, 14, 5, 1), (672, 14, 5, 2), (1152, 7, 5, 1), (1152, 7, 3, 1)],
    ("efficientnet_b0", "cifar"): [(144, 16, 5, 2), (240, 8, 5, 1), (240, 8, 3, 2), (480, 4, 3, 1), (480, 4, 5, 1),
                                   (672, 4, 5, 2), (1152, 2, 5, 1), (1152, 2, 3, 1), (1152, 1, 5, 1)],
    ("convnext_tiny", "imagenet"): [(96, 56, 7, 1), (192, 28, 7, 1), (384, 14, 7, 1), (768, 7, 7, 1)],
    ("convnext_tiny", "cifar"): [(96, 16, 7, 1), (192, 8, 7, 1), (384, 4, 7, 1), (768, 2, 7, 1)],
}
PASSES = ("forward", "input gradient", "weight gradient")
BATCH = 32


def fastest_us(seconds, call):
    best, total, calls = math.inf, 0, 0
    while calls < 4 or total < seconds:
        start = time.thread_time()
        call()
        took = time.thread_time() - start
        if calls:  # the first one warms up
            best = min(best, took)
        total, calls = total + took, calls + 1
    return best * 1e6


def pytorch():
    """Answers the lines that convolution_times reads, by PyTorch."""
    import torch
    torch.set_num_threads(1)
    for line in sys.stdin:
        *sizes, precision, seconds = line.split()
        images, channels, filters, size, kernel, stride, pad, groups = map(int, sizes)
        dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        x = torch.randn(images, channels, size, size).to(dtype)
        weight = torch.randn(filters, channels // groups, kernel, kernel).to(dtype)
        with torch.no_grad():
            forward = lambda: torch.nn.functional.conv2d(x, weight, None, stride, pad, 1, groups)
            dy = torch.randn_like(forward())
            gradient = lambda which: torch.ops.aten.convolution_backward(
                dy, x, weight, None, [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], groups, which)
            calls = (forward, lambda: gradient([True, False, False]), lambda: gradient([False, True, False]))
            print(*(f"{fastest_us(float(seconds), call):.1f}" for call in calls), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.1, help="of each pass in each turn")
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--networks", nargs="+", default=sorted({network for network, _ in SHAPES}))
    parser.add_argument("--forms", nargs="+", default=["cifar", "imagenet"])
    parser.add_argument("--pytorch", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.pytorch:
        return pytorch()
    if not args.program:
        parser.error("say where convolution_times is")
    sides = [Side([args.program], args.core), Side([sys.executable, __file__, "--pytorch"], args.core)]
    print(f"batch {BATCH}, {'bf16' if args.bf16 else 'float32'}, core {args.core}: microseconds, ours and PyTorch's")
    print(f"{'network':16} {'form':9} {'channels':>8} {'size':>4} {'kernel':>6} {'stride':>6}"
          + "".join(f"  {name:>15} {'PyTorch':>9} {'ratio':>6}" for name in PASSES), flush=True)
    ratios = []
    for (network, form), shapes in SHAPES.items():
        if network not in args.networks or form not in args.forms:
            continue
        for channels, size, kernel, stride in shapes:
            line = (f"{BATCH} {channels} {channels} {size} {kernel} {stride} {kernel // 2} {channels} "
                    f"{'bf16' if args.bf16 else 'float32'} {args.seconds}")
            rounds = [[side.answer(line) for side in sides] for _ in range(args.rounds)]
            ours, theirs = [[statistics.median(us) for us in zip(*side)] for side in zip(*rounds)]
            ratios.append([their / our for our, their in zip(ours, theirs)])
            print(f"{network:16} {form:9} {channels:8} {size:4} {kernel:6} {stride:6}"
                  + "".join(f"  {our:15.0f} {their:9.0f} {their / our:6.2f}" for our, their in zip(ours, theirs)), flush=True)
    for name, column in zip(PASSES, zip(*ratios)):
        print(f"{name}: geometric mean {math.exp(statistics.fmean(map(math.log, column))):.2f}, lowest {min(column):.2f}")


if __name__ == "__main__":
    main()
