#!/usr/bin/env python3
"""Writes trivial_augment.txt: what torchvision's TrivialAugmentWide makes of three images.

For each operation and strength there is a line "NAME STRENGTH CRC CRC CRC", with the CRC-32 of the resulting
bytes (uint8 tensors, C x H x W) of each image. The images are made by a formula, which
tests/data/augment_trivial_test.cpp repeats. Run it as

    python3 tests/golden/trivial_augment.py > tests/golden/trivial_augment.txt

The committed file is of torchvision 0.14.1 and PyTorch 1.13.0.
"""
import zlib

import numpy
import torch
from torchvision.transforms import InterpolationMode
from torchvision.transforms.autoaugment import TrivialAugmentWide, _apply_op


def noise(height, width):
    """Has bytes from 20 to 209, so that AutoContrast has something to do."""
    i = numpy.arange(3 * height * width, dtype=numpy.uint64)
    h = (i * 2654435761 % 2**32) >> 24
    return (20 + h * 190 // 256).astype(numpy.uint8).reshape(3, height, width)


def uneven(height, width):
    """Dark bytes are frequent, and one channel is constant."""
    i = numpy.arange(3 * height * width, dtype=numpy.uint64)
    h = (i * 2246822519 % 2**32) >> 24
    image = (h * h // 255).astype(numpy.uint8).reshape(3, height, width)
    image[1] = 77
    return image


def evenly(first, last, bins=31):
    """Follows the rule of torch.linspace, whose own last bit depends on the processor's vectors."""
    first, last = numpy.float32(first), numpy.float32(last)
    step = (last - first) / numpy.float32(bins - 1)
    return [first + step * numpy.float32(i) if i < bins // 2 else last - step * numpy.float32(bins - 1 - i)
            for i in range(bins)]


def strengths(name, theirs):
    if theirs.ndim == 0:
        return [0.0]
    if name == "Posterize":
        return [float(x) for x in theirs]
    ours = evenly(theirs[0].item(), theirs[-1].item(), len(theirs))
    assert numpy.allclose(ours, theirs.numpy(), rtol=3e-7, atol=0)
    return [float(x) for x in ours]


def main():
    images = [torch.from_numpy(x) for x in (noise(32, 32), uneven(32, 32), noise(23, 40))]
    for name, (theirs, signed) in TrivialAugmentWide()._augmentation_space(31).items():
        for strength in strengths(name, theirs):
            for sign in (1.0, -1.0) if signed else (1.0,):
                results = [_apply_op(x, name, strength * sign, InterpolationMode.NEAREST, None)
                           for x in images]
                crcs = " ".join(f"{zlib.crc32(x.contiguous().numpy().tobytes()):08x}" for x in results)
                print(f"{name} {(strength * sign).hex()} {crcs}")


main()
