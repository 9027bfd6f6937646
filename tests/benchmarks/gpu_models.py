#!/usr/bin/env python3
"""Compares training speed on one GPU with PyTorch's.

    tests/benchmarks/gpu_models.py PROGRAM [--models resnet18 resnet50 …] [--batches 128 32] [--rounds 1]
    [--json FILE]

All train the CIFAR form on the same GPU, taking turns, each model and side in a process of its own: forward,
backward, and SGD with momentum 0.9, Nesterov and weight decay 5e-4; dropout on, auxiliary heads off; one
micro-batch per step. PROGRAM's figures are those of `train --local 1`, data loading included. PyTorch is
channels_last, with cuDNN's timed choice of engines (cudnn.benchmark) and the fused optimiser, on images that
lie in the GPU's memory. Sides (--sides), in the order in which they are measured for all models:

  bf16                ours
  pytorch-bf16        eager, under bf16 autocast
  pytorch-graphs      the same, torch.compile, mode="reduce-overhead"
  pytorch-autotuned   the same, torch.compile, mode="max-autotune", which may search for minutes
  tf32, float32       ours
  pytorch-tf32, pytorch-float32       eager

A figure is the median of a process's steps without the first ten, then the median of the rounds. PyTorch's
steps are timed in runs of ten with one synchronisation at the end of each. The geometric means of ours in
bf16 over PyTorch eager, and over the faster of its two compiled forms, come at the end. What FILE has already
is kept and counts until it is measured again, so that several commands have one mean. A measurement for which
--limit seconds leave no time is left out. PyTorch runs with the LD_LIBRARY_PATH in PYTORCH_LD_LIBRARY_PATH,
where that is set: its own libraries come before a toolkit's.
"""
import argparse, json, math, os, signal, statistics, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = ("alexnet vgg16 resnet18 resnet50 resnet101 resnext50 resnext101 inception_v3 densenet121 squeezenet1_0").split()
WARM_UP = 10
# Name: of whom, precision, how.
SIDES = {
    "bf16": ("ours", "bf16", ""),
    "pytorch-bf16": ("theirs", "bf16", ""),
    "pytorch-graphs": ("theirs", "bf16", "reduce-overhead"),
    "pytorch-autotuned": ("theirs", "bf16", "max-autotune"),
    "tf32": ("ours", "tf32", ""),
    "pytorch-tf32": ("theirs", "tf32", ""),
    "float32": ("ours", "float32", ""),
    "pytorch-float32": ("theirs", "float32", ""),
}
EAGER, COMPILED = ("pytorch-bf16",), ("pytorch-graphs", "pytorch-autotuned")


def pytorch(model, batches, steps, precision, mode):
    """Prints a line for each batch: its size and images/s."""
    sys.path.insert(0, os.path.join(HERE, "..", "golden"))
    import networks, torch
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision != "float32"
    torch.backends.cudnn.benchmark = True
    net = networks.build(model, "cifar").train().cuda().to(memory_format=torch.channels_last)
    for module in net.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.5
    optimiser = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, weight_decay=5e-4, nesterov=True, fused=True)
    for batch in batches:
        if mode:
            torch._dynamo.reset()
        run = torch.compile(net, mode=mode, dynamic=False) if mode else net
        print(batch, pytorch_rate(torch, run, optimiser, batch, steps, precision), flush=True)


def pytorch_rate(torch, run, optimiser, batch, steps, precision):
    x = torch.randn(batch, 3, 32, 32, device="cuda").to(memory_format=torch.channels_last)
    y = torch.randint(0, 10, (batch,), device="cuda")

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
    return statistics.median(rates)


def said(command, most_s, environment=None):
    """What a command prints; an error where it fails, and what it has printed so far where its time is up."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    try:
        out, err = child.communicate(timeout=most_s)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)  # with the processes that compile for it
        print(f"{' '.join(command[-8:])}: stopped after {most_s:.0f} s", file=sys.stderr, flush=True)
        return child.communicate()[0]
    if child.returncode:
        raise RuntimeError(err.strip().splitlines()[-1] if err.strip() else "no message")
    return out


def ours(args, model, batches, precision, left_s):
    rates = {}
    device = args.device + (":tf32" if precision == "tf32" else "")
    for batch in batches:
        with tempfile.TemporaryDirectory() as folder:
            metrics = os.path.join(folder, "metrics.json")
            said([args.program, "train", "--device", device, "--precision", "bf16" if precision == "bf16" else "float32", "--local", "1", "--model", model,
                  "--batch", str(batch), "--microbatches", "1", "--steps", str(args.steps + WARM_UP), "--lr", "0.001", "--metrics", metrics,
                  "--dataset", "synthetic", "--method", "uniform"], max(5, left_s()))
            with open(metrics) as lines:
                all_rates = [step["images_per_s"] for step in map(json.loads, lines) if "images_per_s" in step]
        if len(all_rates) > WARM_UP:
            rates[batch] = statistics.median(all_rates[WARM_UP:])
    return rates


def theirs(args, model, batches, precision, how, left_s):
    command = [sys.executable, __file__, args.program, "--pytorch", model, "--steps", str(args.steps), "--precision", precision, "--mode", how,
               "--batches", *map(str, batches)]
    environment = dict(os.environ)
    if "PYTORCH_LD_LIBRARY_PATH" in environment:
        environment["LD_LIBRARY_PATH"] = environment.pop("PYTORCH_LD_LIBRARY_PATH")
    lines = [line.split() for line in said(command, max(5, left_s()), environment).splitlines()]
    return {int(line[0]): float(line[1]) for line in lines if len(line) == 2 and line[0].isdigit()}


def attempt(side, args, model, left_s):
    """Rates by batch; none, with the reason on stderr, where it fails: one that fails must not end the
    others."""
    who, precision, how = SIDES[side]
    try:
        if who == "ours":
            return ours(args, model, args.batches, precision, left_s)
        return theirs(args, model, args.batches, precision, how, left_s)
    except Exception as error:
        print(f"{model}, {side}: {error}", file=sys.stderr, flush=True)
        return {}


def ratio(rates, theirs):
    """Ours in bf16 over the fastest of their sides."""
    fastest = max((rates[side] for side in theirs if rates.get(side)), default=math.nan)
    return rates.get("bf16", math.nan) / fastest


def rates_in(file):
    """What an earlier command wrote to --json's file, by (model, batch)."""
    if not file or not os.path.exists(file):
        return {}
    with open(file) as text:
        return {(row["model"], row["batch"]): row["images_per_s"] for row in json.load(text)}


def rows_of(before, measured):
    """All rows, with the medians of what was measured in the place of what was known before."""
    rows = []
    for of in {**before, **measured}:
        medians = {side: statistics.median(rates) for side, rates in measured.get(of, {}).items()}
        rows.append({"model": of[0], "batch": of[1], "images_per_s": {**before.get(of, {}), **medians}})
    return rows


def means(all_rates):
    """A line for each of PyTorch's forms that was measured beside ours, of all models' and batches' rates."""
    lines = []
    for name, theirs in (("eager", EAGER), ("compiled", COMPILED)):
        ratios = [r for r in (ratio(rates, theirs) for rates in all_rates) if math.isfinite(r)]
        if ratios:
            mean = math.exp(statistics.fmean(map(math.log, ratios)))
            lines.append(f"ours in bf16 over PyTorch {name}: geometric mean {mean:.2f} of {len(ratios)}, "
                         f"lowest {min(ratios):.2f}")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=["resnet18", "resnet50"], metavar="MODEL")
    parser.add_argument("--batches", nargs="+", type=int, default=[128, 32])
    parser.add_argument("--sides", nargs="+", choices=list(SIDES), default=list(SIDES), metavar="SIDE")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--limit", type=float, default=float(os.environ.get("MOST", 3600)) - 10, help="seconds")
    parser.add_argument("--json", help="write all figures to this file")
    parser.add_argument("--pytorch", choices=MODELS, help=argparse.SUPPRESS)
    parser.add_argument("--precision", default="float32", help=argparse.SUPPRESS)
    parser.add_argument("--mode", default="", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.pytorch:
        return pytorch(args.pytorch, args.batches, args.steps, args.precision, args.mode)

    end = time.monotonic() + args.limit
    before, measured = rates_in(args.json), {}  # measured: (model, batch): side: rates of all rounds
    for side in args.sides:
        for model in args.models:
            for _ in range(args.rounds):
                if end - time.monotonic() < 10:
                    print(f"{model}, {side}: no time left", file=sys.stderr, flush=True)
                    continue
                start = time.monotonic()
                for batch, rate in attempt(side, args, model, lambda: end - time.monotonic()).items():
                    measured.setdefault((model, batch), {}).setdefault(side, []).append(rate)
                    print(f"{model:14} {batch:5} {side:18} {rate:10.0f} images/s ({time.monotonic() - start:.0f} s)", flush=True)
            if args.json:
                with open(args.json, "w") as file:
                    json.dump(rows_of(before, measured), file, indent=1)

    rows = rows_of(before, measured)
    sides = [side for side in SIDES if any(side in row["images_per_s"] for row in rows)]
    print(f"\n{'images/s':14} {'batch':>5}" + "".join(f" {side:>17}" for side in sides) +
          "   ours in bf16 over eager, over compiled")
    for row in rows:
        rates = row["images_per_s"]
        columns = "".join(f" {rates.get(side, math.nan):17.0f}" for side in sides)
        print(f"{row['model']:14} {row['batch']:5}{columns}"
              f"   {ratio(rates, EAGER):.2f}, {ratio(rates, COMPILED):.2f}")
    print("\n".join(means([row["images_per_s"] for row in rows])))


if __name__ == "__main__":
    main()
