"""This module knows where a network has no derivative: ReLU at 0, ReLU6 there and at 6, the hard swish and
the hard sigmoid at ±3, and max pooling where two values are largest.

A number within rounding of such a kink falls on one side here and on the other there; whole tensors then
differ by far more than rounding, in one PyTorch as in another. Comparing precisions needs inputs for which no
number lies that close.
"""
import contextlib

import torch
from torch.nn import functional


class Near(Exception):
    """A number too near to a kink."""


KINKS = {"relu": (0,), "hardtanh": (0, 6), "hardswish": (-3, 3), "hardsigmoid": (-3, 3)}  # ReLU6 is a hardtanh


@contextlib.contextmanager
def watched(on_relu, on_pool):
    """Calls on_relu(x - k) for each kink k of each activation's input x inside, and on_pool(x, kernel,
    stride, padding, ceil) before each max pool."""
    pool, activations = functional.max_pool2d, {name: getattr(functional, name) for name in KINKS}

    def watch(name):
        def mine(x, *others, **named):
            for kink in KINKS[name]:
                on_relu(x.detach() - kink)  # a copy, as the activation may overwrite x
            return activations[name](x, *others, **named)

        return mine

    def my_pool(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        on_pool(x.detach(), kernel_size, stride or kernel_size, padding, ceil_mode)
        return pool(x, kernel_size, stride, padding, dilation, ceil_mode)

    functional.max_pool2d = my_pool
    for name in KINKS:
        setattr(functional, name, watch(name))
    try:
        yield
    finally:
        functional.max_pool2d = pool
        for name, activation in activations.items():
            setattr(functional, name, activation)


def windows(x, kernel, stride, padding, ceil):
    """Every window of a max pool as a row."""
    after = padding + (stride if ceil else 0)
    x = functional.pad(x, (padding, after, padding, after), value=-float("inf"))
    rows = x.unfold(2, kernel, stride).unfold(3, kernel, stride).reshape(-1, kernel * kernel)
    return rows[rows.max(1).values > -float("inf")]


def record(net, images):
    """All inputs of kinks of one forward pass: [(kind, tensor, further arguments)]."""
    seen = []
    with torch.no_grad(), watched(lambda x: seen.append(("relu", x)), lambda *a: seen.append(("pool", *a))):
        net(images)
    return seen


def largest_errors(net64, net32, images):
    """Of each kink's input in float32: the largest of each channel, as batch norm makes them differ, but no
    less than their mean; one of all where there are no channels."""
    errors = []
    for a, b in zip(record(net64, images.double()), record(net32, images)):
        error = (a[1] - b[1].double()).abs()
        by_channel = error.amax((0, 2, 3), keepdim=True) if error.dim() == 4 else error.max()
        errors.append(by_channel.clamp(min=by_channel.mean().item()))
    return errors


def far(net, images, errors, relu_margin=4, pool_margin=3):
    """Whether no number is nearer to a kink than so many of the largest errors. Two values of a window may
    both be off. Where zeros of a ReLU tie, it does not matter which is chosen: none of them has a
    gradient."""
    left = iter(errors)

    def relu(x):
        if (x / next(left)).abs().min() <= relu_margin:
            raise Near

    def pool(x, *shape):
        two = windows(x / next(left), *shape).topk(2, 1).values
        gaps = (two[:, 0] - two[:, 1])[two[:, 0] != 0]
        if gaps.numel() and gaps.min() <= pool_margin:
            raise Near

    try:
        with torch.no_grad(), watched(relu, pool):
            net(images)
    except Near:
        return False
    return True


def same_sides(net64, net32, images):
    """Whether both precisions agree on every mask and every largest of a window."""
    for a, b in zip(record(net64, images.double()), record(net32, images)):
        if a[0] == "relu":
            if not torch.equal(a[1] > 0, b[1] > 0):
                return False
            continue
        rows64, rows32 = windows(*a[1:]), windows(*b[1:])
        matters = rows64.max(1).values != 0
        if not torch.equal(rows64.argmax(1)[matters], rows32.argmax(1)[matters]):
            return False
    return True
