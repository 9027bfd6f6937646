#!/usr/bin/python3
"""Compares training speed and memory of networks with PyTorch's, on one pinned core.

    tests/benchmarks/ten_models.py PROGRAM [--models resnet18 vgg16 …] [--rounds 3] [--bf16] [--data-dir D]
    [--blas DIR] [--channels-last]

Per network the two take turns (A B A B …), each time as a new process: machines are noisy, and only the ratio
counts. Both train the CIFAR form at batch 32: forward, backward, and SGD with momentum 0.9, Nesterov and
weight decay 5e-4; dropout and stochastic depth on, auxiliary heads off. PROGRAM is build/antichain; its
figure is that of `train --local 1`, data loading included. PyTorch runs the same network on images that
already lie in memory. A figure is the median of a process's steps without the first three, then the median of
the rounds; memory is the largest resident set of a process, from start to end.

--bf16 adds both in bf16 with float32 weights: ours by --precision bf16, PyTorch's by torch.autocast. Ours is
then also compared with our float32 and with both of PyTorch's; nan says that this PyTorch can't train the
network in bf16. Denormal numbers are computed as such on both sides. A torch that is linked to the reference
BLAS, as Debian's may be, multiplies matrices fifty times slower than it could: AlexNet's three linear layers
are four fifths of its time. --blas DIR lets it find a libblas.so.3 there (of libopenblas0-pthread:
/usr/lib/x86_64-linux-gnu/openblas-pthread). --channels-last has PyTorch keep images and filters with the
channels last. The script needs python3-torch and python3-torchvision.
"""
import argparse, json, math, os, statistics, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = ("alexnet vgg16 resnet18 resnet50 resnet101 resnext50 resnext101 inception_v3 densenet121 squeezenet1_0 "
          "mobilenet_v2 mobilenet_v3_large efficientnet_b0 convnext_tiny").split()
WARM_UP = 3


def network(model, channels_last=False):
    """Returns PyTorch's network in training mode, with dropout and stochastic depth on."""
    sys.path.insert(0, os.path.join(HERE, "..", "golden"))
    import networks, torch
    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = networks.build(model, "cifar", drops=True).train()
    return net.to(memory_format=torch.channels_last) if channels_last else net


def pytorch(net, batch, steps, bf16=False):
    """Returns images/s: the other side of `measure`."""
    import torch
    optimiser = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, weight_decay=5e-4, nesterov=True)
    x, y = torch.randn(batch, 3, 32, 32), torch.randint(0, 10, (batch,))
    seconds = []
    for _ in range(steps):
        start = time.perf_counter()
        optimiser.zero_grad()
        try:
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
                logits = net(x)
            torch.nn.functional.cross_entropy(logits.float(), y).backward()
        except RuntimeError as error:
            # PyTorch 1.13 lacks gradients of hardswish and ReLU6, and a mixed layer norm.
            if not bf16 or "BFloat16" not in str(error):
                raise
            return math.nan
        optimiser.step()
        seconds.append(time.perf_counter() - start)
    return batch / statistics.median(seconds[WARM_UP:])


def rate_in(metrics):
    """Returns the median of our steps' images/s."""
    with open(metrics) as lines:
        rates = [step["images_per_s"] for step in map(json.loads, lines) if "images_per_s" in step]
    return statistics.median(rates[WARM_UP:])


def run_alone(command, core, **environment):
    """On one core. (standard output, the process's largest resident set in MiB); the end of all where it
    fails."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
        child = subprocess.Popen(["taskset", "-c", str(core), *command], stdout=out, stderr=errors, env=environment)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0), out.seek(0)
        if child.returncode:
            sys.exit(f"{' '.join(command)} ended with {child.returncode}:\n{errors.read()}")
        return out.read(), usage.ru_maxrss / 1024


class Ours:
    """`profile` once, then `train` by that profile: training begins as it does for users who planned."""

    def __init__(self, args, model, folder, precision):
        self.args, self.metrics = args, os.path.join(folder, "metrics.json")
        data = ["--data-dir", args.data_dir] if args.data_dir else ["--dataset", "synthetic"]
        profile = os.path.join(folder, f"{precision}.json")
        shape = ["--model", model, "--batch", str(args.batch), "--microbatches", "1"]
        if precision != "float32":
            shape += ["--precision", precision]
        run_alone([args.program, "profile", *shape, "--json", profile], args.core)
        self.command = [args.program, "train", "--local", "1", "--profile", profile, *shape, "--steps", str(args.steps),
                        "--lr", "0.001", "--metrics", self.metrics, *data]

    def measure(self):
        _, mib = run_alone(self.command, self.args.core)
        return rate_in(self.metrics), mib


class Theirs:
    def __init__(self, args, model, precision):
        self.core = args.core
        self.command = [sys.executable, __file__, args.program, "--pytorch", model, "--batch", str(args.batch),
                        "--steps", str(args.steps)] + (["--bf16"] if precision == "bf16" else [])
        self.command += ["--channels-last"] if args.channels_last else []
        self.environment = {"LD_LIBRARY_PATH": args.blas} if args.blas else {}

    def measure(self):
        out, mib = run_alone(self.command, self.core, **self.environment)
        return float(out), mib


def compare(args, model):
    """Per side: (median images/s, largest MiB)."""
    with tempfile.TemporaryDirectory() as folder:
        sides = [side for precision in (["float32", "bf16"] if args.bf16 else ["float32"])
                 for side in (Ours(args, model, folder, precision), Theirs(args, model, precision))]
        rounds = [[side.measure() for side in sides] for _ in range(args.rounds)]
    return [(statistics.median(rate for rate, _ in side), max(mib for _, mib in side)) for side in zip(*rounds)]


def in_bf16(our_bf16, their_bf16, ours, theirs):
    (rate, mib), (their_rate, _) = our_bf16, their_bf16
    line = f" {rate:8.1f} {rate / ours:6.2f} {rate / theirs:6.2f} {mib:6.0f}"
    return line + f" {their_rate:8.1f} {rate / their_rate:6.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS, metavar="MODEL")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--bf16", action="store_true", help="columns for training in bf16, both sides")
    parser.add_argument("--data-dir", help="CIFAR-10's files; otherwise synthetic images")
    parser.add_argument("--blas", metavar="DIR", help="a folder with the libblas.so.3 that PyTorch shall use")
    parser.add_argument("--channels-last", action="store_true", help="PyTorch's memory format")
    parser.add_argument("--pytorch", choices=MODELS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.steps <= WARM_UP:
        parser.error(f"--steps has to be above {WARM_UP}, the steps left out as warm-up")
    if args.pytorch:
        return print(pytorch(network(args.pytorch, args.channels_last), args.batch, args.steps, args.bf16))

    print(f"batch {args.batch}, CIFAR form, float32, core {args.core}: images/s and peak MiB, ours and PyTorch's")
    print(f"{'model':15} {'ours':>8} {'PyTorch':>8} {'ratio':>6} {'MiB':>6} {'PyTorch':>8}"
          + (f" {'bf16':>8} {'/ours':>6} {'/their':>6} {'MiB':>6} {'their':>8} {'ratio':>6}" if args.bf16 else ""),
          flush=True)
    ratios = {}
    for model in args.models:
        (ours, mib), (theirs, their_mib), *bf16 = compare(args, model)
        ratios[model] = ours / theirs
        print(f"{model:15} {ours:8.1f} {theirs:8.1f} {ratios[model]:6.2f} {mib:6.0f} {their_mib:8.0f}"
              + (in_bf16(*bf16, ours, theirs) if bf16 else ""), flush=True)
    lowest = min(ratios, key=ratios.get)
    print(f"geometric mean {statistics.geometric_mean(ratios.values()):.2f}, lowest {ratios[lowest]:.2f} ({lowest})")


if __name__ == "__main__":
    main()
