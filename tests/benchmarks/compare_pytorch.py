#!/usr/bin/python3
"""Images per second of training, beside PyTorch, on one pinned core: forward, backward and update of the CIFAR form of a
model at batch 32 in float32. The two take turns (A B A B …), because machines are noisy and only the ratio counts.

    tests/benchmarks/compare_pytorch.py PROGRAM [--model resnet18] [--batch 32] [--rounds 3] [--core 0] [--data-dir D]

PROGRAM is build/antichain; its figure is that of `train --local 1`, data loading included. PyTorch runs the same
architecture on one thread, with SGD, momentum and weight decay, on images that already lie in memory.
Needs python3-torch and python3-torchvision.
"""
import argparse, json, os, statistics, subprocess, sys, tempfile, time


def torch_model(name):
    import torch.nn as nn, torchvision.models as models
    if name == "resnet18":
        net = models.resnet18(num_classes=10)
        net.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        net.maxpool = nn.Identity()
    elif name == "vgg16":
        net = models.vgg16(num_classes=10)
        net.avgpool = nn.Identity()
        relu, drop = nn.ReLU, nn.Dropout
        net.classifier = nn.Sequential(nn.Linear(512, 512), relu(), drop(), nn.Linear(512, 512), relu(), drop(), nn.Linear(512, 10))
    elif name == "squeezenet":
        net = models.squeezenet1_0(num_classes=10)
        net.features[0] = nn.Conv2d(3, 96, 3, 1, 1)
    else:
        sys.exit(f"no PyTorch counterpart of {name} here; use resnet18, vgg16 or squeezenet")
    return net


def pytorch_rate(args):
    import torch
    torch.set_num_threads(1)
    net = torch_model(args.model).train()
    optimiser = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, weight_decay=5e-4, nesterov=True)
    x, y = torch.randn(args.batch, 3, 32, 32), torch.randint(0, 10, (args.batch,))
    seconds = []
    for _ in range(args.steps):
        start = time.perf_counter()
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        optimiser.step()
        seconds.append(time.perf_counter() - start)
    return args.batch / statistics.median(seconds[2:])


def our_rate(args):
    with tempfile.TemporaryDirectory() as folder:
        metrics = os.path.join(folder, "metrics.json")
        data = ["--data-dir", args.data_dir] if args.data_dir else ["--dataset", "synthetic"]
        subprocess.run(["taskset", "-c", str(args.core), args.program, "train", "--local", "1", "--model", args.model,
                        "--batch", str(args.batch), "--microbatches", "1", "--steps", str(args.steps), "--lr", "0.001",
                        "--metrics", metrics, *data], check=True, stdout=subprocess.DEVNULL)
        with open(metrics) as lines:
            rates = [step["images_per_s"] for step in map(json.loads, lines) if "images_per_s" in step]
    return statistics.median(rates[2:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--data-dir")
    parser.add_argument("--pytorch-only", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.pytorch_only:
        return print(pytorch_rate(args))
    ratios = []
    print(f"{args.model}, batch {args.batch}, one core, float32, forward + backward + update, images/s")
    for round in range(1, args.rounds + 1):
        ours = our_rate(args)
        theirs = float(subprocess.run(["taskset", "-c", str(args.core), sys.executable, __file__, args.program, *sys.argv[2:],
                                       "--pytorch-only"], check=True, capture_output=True, text=True).stdout)
        ratios.append(ours / theirs)
        print(f"round {round}: antichain {ours:7.1f}   PyTorch {theirs:7.1f}   ratio {ratios[-1]:.2f}", flush=True)
    print(f"median ratio {statistics.median(ratios):.2f}")


main()
