#!/usr/bin/python3
"""Compares two replicas with PyTorch's DistributedDataParallel (Li et al., "PyTorch Distributed", VLDB 2020),
on two pinned cores.

    tests/benchmarks/data_parallel.py PROGRAM [--models resnet18 vgg16 …] [--rounds 3] [--blas DIR]

Each side trains the CIFAR form of a network on one core with batch 32, and on two with batch 64, 32 images a
rank: ours by `mpirun -n 2 PROGRAM train --replicas 2`, PyTorch's by DistributedDataParallel over gloo, whose
all-reduces overlap its backward. All four take turns, each time as new processes. A figure is the median of
the steps without the first three, then that of the rounds. Optimiser, dropout and --blas are those of
ten_models.py. The script needs python3-torch and python3-torchvision.
"""
import argparse, os, socket, statistics, subprocess, sys, tempfile

from ten_models import MODELS, WARM_UP, network, pytorch, rate_in

RANK_BATCH = 32


def pytorch_rank(model, steps, rank, ranks):
    """One rank; the first prints images/s of all."""
    net = network(model)
    if ranks > 1:
        import torch
        torch.distributed.init_process_group("gloo", rank=rank, world_size=ranks)
        net = torch.nn.parallel.DistributedDataParallel(net)
    rate = pytorch(net, RANK_BATCH, steps)
    if rank == 0:
        print(ranks * rate)


def run(commands, environments):
    """All at once, one a core; the first one's standard output, or the end of all where one fails."""
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 env={**os.environ, "OMP_NUM_THREADS": "1", **environment})
                for command, environment in zip(commands, environments)]
    outputs = [child.communicate() for child in children]
    for child, command, (_, errors) in zip(children, commands, outputs):
        if child.returncode:
            sys.exit(f"{' '.join(command)} ended with {child.returncode}:\n{errors}")
    return outputs[0][0]


def ours(args, model, folder, ranks):
    shape = ["--model", model, "--batch", str(ranks * RANK_BATCH), "--microbatches", str(ranks), "--dataset", "synthetic"]
    metrics = os.path.join(folder, "metrics.json")
    launch = ["taskset", "-c", "0", args.program] if ranks == 1 else \
        ["mpirun", "--bind-to", "core", "-n", str(ranks), args.program]
    train = ["train", *shape, "--steps", str(args.steps), "--lr", "0.001", "--metrics", metrics]
    run([[*launch, *train, *(["--replicas", str(ranks)] if ranks > 1 else [])]], [{}])
    return rate_in(metrics)


def theirs(args, model, _, ranks):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    if args.blas:
        environment["LD_LIBRARY_PATH"] = args.blas
    commands = [["taskset", "-c", str(rank), sys.executable, __file__, args.program, "--pytorch", model, "--steps",
                 str(args.steps), "--rank", str(rank), "--ranks", str(ranks)] for rank in range(ranks)]
    return float(run(commands, [environment] * ranks))


def compare(args, model):
    """Median images/s of ours on one core and on two, then of PyTorch's."""
    with tempfile.TemporaryDirectory() as folder:
        rounds = [[side(args, model, folder, ranks) for side in (ours, theirs) for ranks in (1, 2)]
                  for _ in range(args.rounds)]
    return [statistics.median(side) for side in zip(*rounds)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS, metavar="MODEL")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--blas", metavar="DIR", help="a folder with the libblas.so.3 that PyTorch shall use")
    parser.add_argument("--pytorch", choices=MODELS, help=argparse.SUPPRESS)
    parser.add_argument("--rank", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--ranks", type=int, default=1, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.steps <= WARM_UP:
        parser.error(f"--steps has to be above {WARM_UP}, the steps left out as warm-up")
    if args.pytorch:
        return pytorch_rank(args.pytorch, args.steps, args.rank, args.ranks)

    print(f"{RANK_BATCH} images a rank, CIFAR form, float32: images/s on one core and two, and how many times as many")
    print(f"{'':15} {'ours':>8} {'':>8} {'':>6} {'PyTorch':>8} {'':>8} {'':>6} {'ours / theirs':>14}")
    print(f"{'model':15} {'1':>8} {'2':>8} {'times':>6} {'1':>8} {'2':>8} {'times':>6} {'on two cores':>14}")
    rows = []
    for model in args.models:
        one, two, their_one, their_two = compare(args, model)
        rows.append((two / one, their_two / their_one, two / their_two))
        print(f"{model:15} {one:8.1f} {two:8.1f} {rows[-1][0]:6.2f} {their_one:8.1f} {their_two:8.1f} {rows[-1][1]:6.2f} "
              f"{rows[-1][2]:14.2f}", flush=True)
    if len(rows) > 1:
        means = [statistics.geometric_mean(column) for column in zip(*rows)]
        print(f"{'geometric mean':15} {'':8} {'':8} {means[0]:6.2f} {'':8} {'':8} {means[1]:6.2f} {means[2]:14.2f}")


if __name__ == "__main__":
    main()
