#!/usr/bin/python3
"""Counts the training images that we and torchvision's transforms make in a second, on one pinned core.

    tests/benchmarks/augmentation.py build/tests/benchmarks/augment_times FOLDER [--rounds 5] [--batches 40]

FOLDER has CIFAR-10's binary files. Both sides take bytes and make normalised float32 batches of 128 images
with their labels. torchvision's transforms run image by image on uint8 tensors, as the workers of a
DataLoader do, without the cost of the workers; mixup and cutmix are those of its references, on the batch.
For each augmentation the two take turns, and a ratio is that of the medians. Times are the processor's, of
the whole process. The script needs python3-torchvision.
"""
import argparse, math, statistics, sys, time

from side import Side

# name: crop, flip, trivial, erase, mixup, cutmix
AUGMENTATIONS = {
    "none": ("none", 0, 0, 0, 0, 0),
    "crop, flip": ("black", 1, 0, 0, 0, 0),
    "reflected crop, flip": ("reflect", 1, 0, 0, 0, 0),
    "crop, flip, erase 1": ("black", 1, 0, 1, 0, 0),
    "crop, flip, mixup": ("black", 1, 0, 0, 0.2, 0),
    "crop, flip, cutmix": ("black", 1, 0, 0, 0, 1),
    "crop, flip, TrivialAugment": ("black", 1, 1, 0, 0, 0),
    "all": ("reflect", 1, 1, 0.25, 0.2, 1),
}
BATCH = 128


def mixed(images, targets, mixup, cutmix):
    """torchvision's references/classification/transforms.py, RandomMixup and RandomCutmix with p = 1."""
    import torch
    cuts = cutmix > 0 and (mixup == 0 or bool(torch.randint(2, (1,))))
    alpha = cutmix if cuts else mixup
    lam = float(torch._sample_dirichlet(torch.tensor([alpha, alpha]))[0])
    rolled, targets_rolled = images.roll(1, 0), targets.roll(1, 0)
    if cuts:
        height, width = images.shape[-2:]
        x, y = int(torch.randint(width, (1,))), int(torch.randint(height, (1,)))
        half = 0.5 * math.sqrt(1 - lam)
        half_width, half_height = int(half * width), int(half * height)
        x1, x2 = max(x - half_width, 0), min(x + half_width, width)
        y1, y2 = max(y - half_height, 0), min(y + half_height, height)
        images[:, :, y1:y2, x1:x2] = rolled[:, :, y1:y2, x1:x2]
        lam = 1 - (x2 - x1) * (y2 - y1) / (width * height)
    else:
        images.mul_(lam).add_(rolled.mul_(1 - lam))
    targets.mul_(lam).add_(targets_rolled.mul_(1 - lam))


def torchvision(folder):
    """Answers the lines that augment_times reads."""
    import numpy, torch
    from torchvision import transforms
    torch.set_num_threads(1)
    record = numpy.concatenate([numpy.fromfile(f"{folder}/data_batch_{i}.bin", numpy.uint8).reshape(-1, 3073)
                                for i in range(1, 6)])
    images = torch.from_numpy(record[:, 1:].reshape(-1, 3, 32, 32).copy())
    labels = torch.from_numpy(record[:, 0].astype(numpy.int64))
    for line in sys.stdin:
        crop, *numbers = line.split()
        flip, trivial, erase, mixup, cutmix, batches = map(float, numbers)
        steps = []
        if crop != "none":
            mode = "reflect" if crop == "reflect" else "constant"
            steps.append(transforms.RandomCrop(32, 4, padding_mode=mode))
        if flip:
            steps.append(transforms.RandomHorizontalFlip())
        if trivial:
            # Its Equalize fails on the views that RandomCrop returns.
            steps += [transforms.Lambda(torch.Tensor.contiguous), transforms.TrivialAugmentWide()]
        steps += [transforms.ConvertImageDtype(torch.float32),
                  transforms.Normalize((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))]
        if erase:
            steps.append(transforms.RandomErasing(erase))
        transform = transforms.Compose(steps)

        def load(order):
            x, y = torch.stack([transform(images[i]) for i in order]), labels[order]
            if mixup or cutmix:
                mixed(x, torch.nn.functional.one_hot(y, 10).to(torch.float32), mixup, cutmix)

        order = torch.randperm(len(images))[: (int(batches) + 1) * BATCH].view(-1, BATCH)
        load(order[0])
        start = time.process_time()
        for batch in order[1:]:
            load(batch)
        print(f"{int(batches) * BATCH / (time.process_time() - start):.0f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?")
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=40,
                        help="of torchvision in a turn; ours has ten times as many")
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--torchvision", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.torchvision:
        return torchvision(args.program)
    if not args.folder:
        parser.error("say where augment_times and the data are")
    sides = [Side([args.program, args.folder], args.core),
             Side([sys.executable, __file__, "--torchvision", args.folder], args.core)]
    print(f"CIFAR-10, batches of {BATCH}, core {args.core}: images a second, medians of {args.rounds} turns")
    print(f"{'augmentation':28} {'Antichain':>10} {'torchvision':>12} {'ratio':>6}", flush=True)
    for name, options in AUGMENTATIONS.items():
        line = " ".join(map(str, options))
        turns = [sides[0].answer(f"{line} {10 * args.batches}") + sides[1].answer(f"{line} {args.batches}")
                 for _ in range(args.rounds)]
        ours, theirs = (statistics.median(side) for side in zip(*turns))
        print(f"{name:28} {ours:10.0f} {theirs:12.0f} {ours / theirs:6.1f}", flush=True)


main()
