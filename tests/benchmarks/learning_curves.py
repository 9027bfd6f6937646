#!/usr/bin/env python3
"""Compares how the loss falls with PyTorch's: both train each model in its CIFAR form, on the same batches.

    tests/benchmarks/learning_curves.py PROGRAM FOLDER [MODEL ...] --data-dir D
        [--side both|pytorch|antichain|control|none]

PROGRAM is build/antichain. Both sides start from the same weights (export --seed; AlexNet and SqueezeNet from
larger ones, as they would not leave the first plateau in so few steps), see the same augmented images in the
same order (data batches) and make the same steps in float32 on one thread, at a constant rate: of SGD
(Nesterov, momentum 0.9, weight decay 0.0005), ViT-tiny of AdamW (weight decay 0.05 of all weights). Dropout
is off: two frameworks can't draw the same masks. What is left to differ is rounding, which training
magnifies; the curves agree step by step at first, and as a whole later.
--side control shows how much it magnifies: it runs ours again, from weights that are off by up to 2**-23 of
their size.

FOLDER keeps MODEL.pytorch.csv and MODEL.antichain.csv (step, loss of the batch); a side that is there for all
its steps is not run again. Then curves.svg and curves.png are drawn of all models that have both
sides, and a table is printed: means of ten losses, and the largest gap between the curves smoothed over 20
steps. The script needs python3-torch and python3-torchvision, and python3-matplotlib for the pictures.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "golden"))

STEPS, SEED, SMOOTHED = 200, 1, 20
# Name, batch, rate. The batches shrink with a network's cost; without batch norm the rates are lower.
MODELS = {
    "alexnet": ("AlexNet", 32, 0.001),
    "vgg16": ("VGG-16", 32, 0.02),
    "resnet18": ("ResNet-18", 16, 0.005),
    "resnet50": ("ResNet-50", 8, 0.005),
    "resnet101": ("ResNet-101", 8, 0.005),
    "resnext50": ("ResNeXt-50", 8, 0.005),
    "resnext101": ("ResNeXt-101", 4, 0.002),
    "inception_v3": ("Inception-v3", 32, 0.005),
    "densenet121": ("DenseNet-121", 16, 0.005),
    "squeezenet1_0": ("SqueezeNet 1.0", 64, 0.002),
    "vit_tiny": ("ViT-tiny", 8, 0.0002),
}
ADAMW = {
    "vit_tiny": {"--optimiser": "adamw", "--weight-decay": 0.05, "--decay-groups": "all", "--clip-norm": 0}
}
LARGER_WEIGHTS = ("alexnet", "squeezenet1_0")  # He et al. 2015, as golden/networks.py draws them


def csv(folder, model, side):
    return folder / f"{model}.{side}.csv"


def losses(folder, model, side):
    """Of each step; [] where there are none."""
    file = csv(folder, model, side)
    return [float(line.split(",")[1]) for line in file.read_text().splitlines()[1:]] if file.exists() else []


def write_losses(folder, model, side, values):
    rows = "".join(f"{step},{loss:.6f}\n" for step, loss in enumerate(values, 1))
    csv(folder, model, side).write_text("step,loss\n" + rows)


def run(program, command, options):
    words = [str(word) for pair in options.items() for word in pair]
    subprocess.run([program, *command.split(), *words], check=True, stdout=subprocess.DEVNULL)


def initial_weights(args, model, folder):
    """A file."""
    import networks
    import tensor_file

    file = f"{folder}/weights.safetensors"
    if model in LARGER_WEIGHTS:
        tensor_file.write(file, networks.load(networks.build(model, "cifar")).state_dict())
    else:
        run(args.program, "export", {"--model": model, "--form": "cifar", "--seed": SEED, "--out": file})
    return file


def by_pytorch(args, model, batch, rate):
    import networks
    import torch
    from tensor_file import read

    torch.set_num_threads(1)
    net = networks.build(model, "cifar")  # dropout off
    with tempfile.TemporaryDirectory() as folder:
        batches = f"{folder}/batches.safetensors"
        net.load_state_dict(read(initial_weights(args, model, folder)))
        run(args.program, "data batches", {"--data-dir": args.data_dir, "--steps": STEPS, "--batch": batch, "--seed": SEED,
                                           "--out": batches})
        data = read(batches)
    if model in ADAMW:
        optimiser = torch.optim.AdamW(net.parameters(), rate, weight_decay=ADAMW[model]["--weight-decay"])
    else:
        optimiser = torch.optim.SGD(net.parameters(), rate, momentum=0.9, weight_decay=5e-4, nesterov=True)
    values = []
    for images, labels in zip(data["images"].split(batch), data["labels"].split(batch)):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(net.train()(images), labels)
        loss.backward()
        optimiser.step()
        values.append(loss.item())
    return values


def nudged(file):
    """The file, its parameters changed by up to half a digit of float32."""
    import networks
    import tensor_file

    weights = tensor_file.read(file)
    for name, w in weights.items():
        if w.is_floating_point() and "running" not in name:
            weights[name] = (w * (1 + 2.0**-23 * networks.drawn(f"{name} control", tuple(w.shape)))).float()
    tensor_file.write(file, weights)
    return file


def by_antichain(args, model, batch, rate, change=lambda file: file):
    with tempfile.TemporaryDirectory() as folder:
        metrics = f"{folder}/metrics.json"
        run(args.program, "train", {
            "--local": 1, "--model": model, "--batch": batch, "--microbatches": 1, "--steps": STEPS, "--seed": SEED,
            "--init": change(initial_weights(args, model, folder)), "--dropout": 0, "--lr": rate, "--lr-schedule": "constant",
            "--data-dir": args.data_dir, "--metrics": metrics, **ADAMW.get(model, {})})
        lines = [json.loads(line) for line in pathlib.Path(metrics).read_text().splitlines()]
    return [line["loss"] for line in lines if "loss" in line]


def control(args, model, batch, rate):
    return by_antichain(args, model, batch, rate, nudged)


def smoothed(values):
    """The mean of each loss and up to SMOOTHED - 1 before it."""
    return [sum(values[max(0, i + 1 - SMOOTHED):i + 1]) / min(i + 1, SMOOTHED) for i in range(len(values))]


def around(values, step):
    """The mean of ten losses that end with this step; of the first step itself."""
    return values[0] if step == 1 else sum(values[step - 10:step]) / 10


def largest_gap(a, b):
    return max(abs(x - y) for x, y in zip(smoothed(a)[SMOOTHED:], smoothed(b)[SMOOTHED:]))


def complete(folder, model):
    return all(len(losses(folder, model, side)) == STEPS for side in ("pytorch", "antichain"))


def print_table(folder):
    steps = (1, 50, 100, 150, 200)
    print("| model | batch, rate | " + " | ".join(f"step {s}" for s in steps) + " | largest gap | first 10 steps |")
    print("|---|---|" + "---|" * (len(steps) + 2))
    for model, (name, batch, rate) in MODELS.items():
        if complete(folder, model):
            a, b = losses(folder, model, "antichain"), losses(folder, model, "pytorch")
            early = max(abs(x / y - 1) for x, y in zip(a[:10], b[:10]))
            pairs = " | ".join(f"{around(a, s):.3f} / {around(b, s):.3f}" for s in steps)
            print(f"| {name} | {batch}, {rate:g} | {pairs} | {largest_gap(a, b):.3f} | {early:.0e} |")


# Okabe & Ito's colours, "Color Universal Design", 2008: told apart by all kinds of colour vision.
LINES = {"antichain": ("Antichain", {"color": "#e69f00", "linewidth": 3}),
         "pytorch": ("PyTorch", {"color": "#0072b2", "linewidth": 1.5, "linestyle": "--"})}


def draw(folder):
    import matplotlib
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "antichain", "svg.fonttype": "none", "font.size": 8})
    from matplotlib import pyplot

    figure, grid = pyplot.subplots(2, 6, figsize=(18, 6), layout="constrained")
    figure.suptitle(f"Loss on CIFAR-10, mean of {SMOOTHED} steps, the same batches and initial weights")
    shown = [model for model in MODELS if complete(folder, model)]
    for axes, model in zip(grid.flat, shown):
        for side, (label, style) in LINES.items():
            axes.plot(range(1, STEPS + 1), smoothed(losses(folder, model, side)), label=label, **style)
        axes.set(title=MODELS[model][0], xlabel="step", ylabel="cross-entropy (nat)", xlim=(0, STEPS))
        axes.grid(color="#dddddd")
    grid.flat[0].legend(frameon=False)
    for axes in grid.flat[len(shown):]:
        axes.set_axis_off()
    for kind in ("svg", "png"):
        figure.savefig(folder / f"curves.{kind}", metadata={"Date": None} if kind == "svg" else None)
    pyplot.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--data-dir")
    parser.add_argument("--side", choices=["both", "pytorch", "antichain", "control", "none"], default="both")
    args = parser.parse_args()
    if args.side != "none" and not args.data_dir:
        parser.error("--data-dir is needed")
    args.folder.mkdir(parents=True, exist_ok=True)
    for model in args.models:
        for side, train in (("pytorch", by_pytorch), ("antichain", by_antichain), ("control", control)):
            wanted = args.side == side or (args.side == "both" and side != "control")
            if wanted and len(losses(args.folder, model, side)) != STEPS:
                write_losses(args.folder, model, side, train(args, model, *MODELS[model][1:]))
                values = losses(args.folder, model, side)
                print(f"{model}, {side}: {values[0]:.3f} to {around(values, STEPS):.3f}", flush=True)
        ours, again = losses(args.folder, model, "antichain"), losses(args.folder, model, "control")
        if ours and again:
            print(f"{model}: the control's largest gap to ours is {largest_gap(ours, again):.3f}")
    print_table(args.folder)
    if any(complete(args.folder, model) for model in MODELS):
        draw(args.folder)


if __name__ == "__main__":
    main()
