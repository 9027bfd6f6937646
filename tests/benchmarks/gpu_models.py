#!/usr/bin/python3
"""Training speed of ten networks on one GPU beside PyTorch.

    tests/benchmarks/gpu_models.py PROGRAM [--models resnet18 vgg16 …] [--batches 32 128] [--rounds 2] [--compile MODEL …]

Both train the CIFAR form in the same run on the same GPU, taking turns, each time as a new process: forward, backward, and
SGD with momentum 0.9, Nesterov and weight decay 5e-4; dropout on, auxiliary heads off; one micro-batch per step. PROGRAM's
figures are those of `train --local 1`, data loading included, once per --devices, and in bf16 (--precision bf16) on the first
of them. PyTorch is eager and channels_last, in float32 without TF32, with TF32, and under bf16 autocast, on images that lie
in the GPU's memory; --compile adds torch.compile (max-autotune) under bf16 autocast. A figure is the median of a process's steps without the first ten, then
the median of the rounds. PyTorch's steps are timed in runs of ten with one synchronisation at the end of each.
"""
import argparse, json, math, os, statistics, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = ("alexnet vgg16 resnet18 resnet50 resnet101 resnext50 resnext101 inception_v3 densenet121 squeezenet1_0").split()
WARM_UP = 10


def pytorch(model, batch, steps, precision, compiled):
    """Prints images/s."""
    sys.path.insert(0, os.path.join(HERE, "..", "golden"))
    import networks, torch
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision != "float32"
    net = networks.build(model, "cifar").train().cuda().to(memory_format=torch.channels_last)
    for module in net.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.5
    optimiser = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, weight_decay=5e-4, nesterov=True)
    x = torch.randn(batch, 3, 32, 32, device="cuda").to(memory_format=torch.channels_last)
    y = torch.randint(0, 10, (batch,), device="cuda")
    run = torch.compile(net, mode="max-autotune") if compiled else net

    def step():
        optimiser.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16"):
            loss = torch.nn.functional.cross_entropy(run(x), y)
        loss.backward()
        optimiser.step()

    for _ in range(WARM_UP):
        step()
    rates = []
    for _ in range(max(1, steps // 10)):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(10):
            step()
        torch.cuda.synchronize()
        rates.append(10 * batch / (time.perf_counter() - start))
    print(statistics.median(rates))


def ours(args, model, batch, device, precision="float32"):
    with tempfile.TemporaryDirectory() as folder:
        metrics = os.path.join(folder, "metrics.json")
        command = [args.program, "train", "--device", device, "--precision", precision, "--local", "1", "--model", model, "--batch", str(batch),
                   "--microbatches", "1", "--steps", str(args.steps + WARM_UP), "--lr", "0.001", "--metrics", metrics,
                   "--dataset", "synthetic"]
        child = subprocess.run(command, capture_output=True, text=True)
        if child.returncode:
            raise RuntimeError(child.stderr.strip().splitlines()[-1] if child.stderr.strip() else "no message")
        with open(metrics) as lines:
            rates = [step["images_per_s"] for step in map(json.loads, lines) if "images_per_s" in step]
        return statistics.median(rates[WARM_UP:])


def theirs(args, model, batch, precision, compiled=False):
    command = [sys.executable, __file__, args.program, "--pytorch", model, "--batches", str(batch), "--steps", str(args.steps),
               "--precision", precision] + (["--compiled"] if compiled else [])
    child = subprocess.run(command, capture_output=True, text=True)
    if child.returncode:
        raise RuntimeError(child.stderr.strip().splitlines()[-1])
    return float(child.stdout.split()[-1])


def attempt(measure, *arguments):
    """A rate, or None with the reason on stderr: one that fails must not end the others."""
    try:
        return measure(*arguments)
    except Exception as error:
        print(f"{arguments[1:]}: {error}", file=sys.stderr)
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS, metavar="MODEL")
    parser.add_argument("--batches", nargs="+", type=int, default=[32, 128])
    parser.add_argument("--devices", nargs="+", default=["cuda", "cuda:tf32"])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--compile", nargs="*", choices=MODELS, default=[], metavar="MODEL")
    parser.add_argument("--json", help="write all figures to this file")
    parser.add_argument("--pytorch", choices=MODELS, help=argparse.SUPPRESS)
    parser.add_argument("--precision", default="float32", help=argparse.SUPPRESS)
    parser.add_argument("--compiled", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.pytorch:
        return pytorch(args.pytorch, args.batches[0], args.steps, args.precision, args.compiled)

    sides = [(device, ours, (device,)) for device in args.devices] + [(f"{args.devices[0]} bf16", ours, (args.devices[0], "bf16"))]
    our_sides = len(sides)
    sides += [(f"PyTorch {p}", theirs, (p,)) for p in ("float32", "tf32", "bf16")]
    print("images/s; ratio: the fastest of ours over the fastest of PyTorch's eager ones; bf16: of the two in bf16")
    print(f"{'model':14} {'batch':>5}" + "".join(f" {name:>16}" for name, _, _ in sides) + f" {'ratio':>6} {'bf16':>6}", flush=True)
    rows, ratios = [], []
    for model in args.models:
        for batch in args.batches:
            rounds = [[attempt(measure, args, model, batch, *rest) for _, measure, rest in sides] for _ in range(args.rounds)]
            rates = [statistics.median([r for r in side if r] or [math.nan]) for side in zip(*rounds)]
            own, other = rates[:our_sides], rates[our_sides:]
            ratio = max(own) / max(other) if all(map(math.isfinite, rates)) else math.nan
            row = {"model": model, "batch": batch, "images_per_s": dict(zip((name for name, _, _ in sides), rates))}
            if model in args.compile:
                row["images_per_s"]["PyTorch compiled bf16"] = attempt(theirs, args, model, batch, "bf16", True)
            rows.append(row)
            if math.isfinite(ratio):
                ratios.append(ratio)
            print(f"{model:14} {batch:5}" + "".join(f" {rate:16.0f}" for rate in rates) + f" {ratio:6.2f} {own[-1] / other[-1]:6.2f}", flush=True)
            if args.json:
                with open(args.json, "w") as file:
                    json.dump(rows, file, indent=1)
    if ratios:
        print(f"geometric mean of ratios {math.exp(statistics.fmean(map(math.log, ratios))):.2f}, lowest {min(ratios):.2f}")


main()
