"""Rows of what sums up numbers along axes: means, norms, maxima, softmax."""

import math

import torch

from antichain.pytorch.calls import Tensor
from antichain.pytorch.operators.table import ROWS, axes_of, sizes
from antichain.translation import Value, natural, refuse_if


@ROWS.row("mean", "mean.dim")
def mean(t, x, *dim, axis=None, keepdim=False, dtype=None, **named):
    if dim and isinstance(dim[-1], bool):
        dim, keepdim = dim[:-1], dim[-1]
    dim = sizes(dim) if dim else named.get("dim", axis)
    every = [] if x.sampled else list(natural(x.rank))
    return t.mean(x, axes_of(t, x, dim) if dim not in (None, [], ()) else every, keepdim)


def share(x, y):
    """Returns how many numbers of x each number of y was made of."""
    return math.prod(x.shape) // math.prod(y.shape)


@ROWS.row("sum", "sum.dim_IntList")
def sum_of(t, x, dim=None, axis=None, keepdim=False, dtype=None):
    y = mean(t, x, dim=dim, axis=axis, keepdim=keepdim)
    return t.multiply(y, share(x, y))


@ROWS.row("var", "var.dim", "var.correction", "std", "std.dim", "std.correction")
def variance(t, x, dim=None, unbiased=True, keepdim=False, correction=None, axis=None):
    centred = t.formula(["subtract a b"], x, mean(t, x, dim=dim, axis=axis, keepdim=True))
    y = mean(t, t.formula(["multiply a a"], centred), dim=dim, axis=axis, keepdim=keepdim)
    rest = share(x, y) - (int(unbiased) if correction is None else int(correction))
    return t.formula(["multiply a b", *["sqrt s0"] * t.call.key.startswith("std")], y, share(x, y) / rest)


@ROWS.row("var_mean", "std_mean", "var_mean.correction", "std_mean.correction")
def variance_and_mean(t, x, dim=None, unbiased=True, keepdim=False, correction=None):
    return variance(t, x, dim, unbiased, keepdim, correction), mean(t, x, dim=dim, keepdim=keepdim)


@ROWS.row("norm", "linalg_norm", "linalg_vector_norm", "vector_norm")
def norm(t, x, p=2, ord=2, dim=None, keepdim=False, dtype=None, out=None):
    order = 2 if (p, ord) in (("fro", 2), (2, None)) else p if ord == 2 else ord
    if order == 1:
        return sum_of(t, t.formula(["abs a"], x), dim=dim, keepdim=keepdim)
    if order == math.inf:
        return amax(t, t.formula(["abs a"], x), dim, keepdim)
    refuse_if(order != 2, f"a norm of the order {order}")
    squares = sum_of(t, t.formula(["multiply a a"], x), dim=dim, keepdim=keepdim)
    return t.formula(["greater a 0", "where s0 a 1", "sqrt s1", "where s0 s2 0"], squares)  # 0 has no slope


@ROWS.row("normalize")
def normalize(t, x, p=2.0, dim=1, eps=1e-12, out=None):
    size = t.formula(["maximum a b"], norm(t, x, p=p, dim=dim, keepdim=True), eps)
    return t.formula(["divide a b"], x, size)


@ROWS.row("pairwise_distance")
def pairwise_distance(t, x1, x2, p=2.0, eps=1e-6, keepdim=False):
    difference = t.formula(["subtract a b", "add s0 c"], x1, x2, float(eps))
    return norm(t, difference, p=p, dim=-1, keepdim=keepdim)


@ROWS.row("cosine_similarity")
def cosine_similarity(t, x1, x2, dim=1, eps=1e-8):
    parts = [normalize(t, x, dim=dim, eps=float(eps)) for x in (x1, t.tensor(x2))]
    return sum_of(t, t.formula(["multiply a b"], *parts), dim=dim)


@ROWS.row("_weight_norm", "_weight_norm_interface")
def weight_norm(t, v, g, dim=0):
    over = [axis for axis in range(v.rank) if dim == -1 or axis != dim % v.rank]
    y = t.formula(["divide b c", "multiply a s0"], v, g, norm(t, v, dim=over, keepdim=True))
    return y if t.call.shape else (y, None)  # ATen's has the norm, too


@ROWS.row("spectral_norm")
def spectral_norm(t, weight, u, v, iterations, eps, training):
    refuse_if(weight.sampled or weight.rank < 2, "spectral_norm of anything but a weight of several axes")
    y = t.emit("spectral_norm", [t.plain(weight)], {"iterations": iterations, "eps": float(eps)})
    t.kept_by_steps(y, {"u": u, "v": v})
    return y


@ROWS.row("amax")
def amax(t, x, dim=None, keepdim=False):
    most = largest(t, x, dim, True)
    share = mean(t, t.formula(["equal a b"], x, most), dim=dim, keepdim=True)
    mean_of_most = mean(t, t.formula(["equal a b", "where s0 a 0"], x, most), dim=dim, keepdim=True)
    several = 1.5 * math.prod(share.shape) / math.prod(x.shape)
    # Of equal ones each has its share of the gradient.
    steps = [f"greater c {several!r}", "divide a c", "where s0 s1 b"]
    y = t.formula(steps, mean_of_most, most, share)
    left = [extent for axis, extent in enumerate(y.shape) if axis not in axes_of(t, x, dim)]
    return y if keepdim else t.reshape(y, left, helper=True)


@ROWS.row("amin")
def amin(t, x, dim=None, keepdim=False):
    return t.formula(["negate a"], amax(t, t.formula(["negate a"], x), dim, keepdim))


@ROWS.row("max", "max.dim")
def max_(t, x, dim=None, keepdim=False, other=None):
    if other is not None or isinstance(dim, (Tensor, Value)):
        return t.formula(["maximum a b"], x, dim if other is None else other)
    y = largest(t, x, dim, keepdim)
    return y if t.call.shape else (y, None)  # max has the places, too


@ROWS.row("min", "min.dim")
def min_(t, x, dim=None, keepdim=False, other=None):
    if other is not None or isinstance(dim, (Tensor, Value)):
        return t.formula(["minimum a b"], x, dim if other is None else other)
    y = t.formula(["negate a"], largest(t, t.formula(["negate a"], x), dim, keepdim))
    return y if t.call.shape else (y, None)


def largest(t, x, dim, keepdim):
    """Returns the largest numbers along axes, of which the first of equal ones has the gradient."""
    refuse_if(dim is None or not x.sampled, "a maximum over the samples")
    over = axes_of(t, x, dim)
    refuse_if(0 in over, "a maximum over the samples")
    kept = [axis for axis in range(x.rank) if axis not in over]
    count = math.prod(x.shape[axis] for axis in over)
    shape = (t.batch, math.prod(x.shape[axis] for axis in kept[1:]), count, 1)
    image = t.reshape(x.permuted((*kept, *over)), shape, helper=True)
    y = image
    while y.shape[2] > 1:  # engines number the pixels of a window in a byte
        windows = [min(y.shape[2], 256), 1]
        y = t.emit("max_pool", [y], {"kernel": windows, "stride": windows, "ceil_mode": True})
    extents = [1 if axis in over else extent for axis, extent in enumerate(x.shape)]
    return t.reshape(y, extents if keepdim else [extents[axis] for axis in kept], helper=True)


@ROWS.row("softmax")
def softmax(t, x, dim, _stacklevel=None, dtype=None, half_to_float=None):
    return t.softmax(x, t.axis(x, dim))


@ROWS.row("softmin")
def softmin(t, x, dim, _stacklevel=None, dtype=None):
    return t.softmax(t.formula(["negate a"], x), t.axis(x, dim))


@ROWS.row("cumsum")
def cumsum(t, x, dim, dtype=None):
    """Is a product with a triangle of ones."""
    axis, rows = t.axis(x, dim), x if x.rank > 2 else t.reshape(x, (x.shape[0], 1, *x.shape[1:]), helper=True)
    axis += rows.rank - x.rank
    order = [*(a for a in range(rows.rank) if a != axis), axis]
    turned = rows.permuted(order)
    y = t.matmul(turned, t.matrices(torch.ones(2 * turned.shape[-1:]).triu(), turned))
    return t.reshape(y.permuted([order.index(a) for a in range(rows.rank)]), x.shape, helper=True)


@ROWS.row("cumprod")
def cumprod(t, x, dim, dtype=None):
    """Multiplies by what is 1, 2, 4 … places before (Hillis & Steele, "Data Parallel Algorithms", CACM
    1986)."""
    axis, apart = t.axis(x, dim), 1
    while apart < x.shape[axis]:
        before = t.within(t.part(x, axis, 0, x.shape[axis] - apart), [(axis, apart, 0)], 1)
        x, apart = t.formula(["multiply a b"], x, before), 2 * apart
    return x


@ROWS.row("local_response_norm", samples=True)
def local_response_norm(t, x, size, alpha=1e-4, beta=0.75, k=1.0):
    square = t.within(t.formula(["multiply a a"], x), [(1, size // 2, (size - 1) // 2)], 0)
    base = [f"multiply b {float(alpha)!r}", f"add s0 {float(k)!r}"]
    return t.formula([*base, f"power s1 {float(beta)!r}", "divide a s2"], x, neighbours(t, square, 1, size))


def neighbours(t, x, axis, size):
    """Returns the means of so many numbers side by side along an axis."""
    left = x.shape[axis] - size + 1
    total = t.part(x, axis, 0, left)
    for first in range(1, size):
        total = t.formula(["add a b"], total, t.part(x, axis, first, first + left))
    return t.multiply(total, 1 / size)


@ROWS.row("avg_pool3d", samples=True)
def avg_pool3d(t, x, kernel_size, stride=None, padding=(), ceil_mode=False, **_):
    size, *rest = kernel_size
    known = rest == [1, 1] and set(stride or kernel_size) == {1} and not any(padding)
    refuse_if(not known, "avg_pool3d besides that of local_response_norm")
    return neighbours(t, x, 2, size)


@ROWS.row("log_softmax")
def log_softmax(t, x, dim, _stacklevel=None, dtype=None, half_to_float=None):
    return t.formula(["subtract a b"], *log_of_sum(t, x, dim))


def log_of_sum(t, x, dim):
    """Returns x less its largest numbers along axes, and the logarithm of the sum of its exponentials."""
    x = t.formula(["subtract a b"], x, largest(t, x, dim, True))
    return x, t.formula(["log a"], sum_of(t, t.formula(["exp a"], x), dim=dim, keepdim=True))


@ROWS.row("logsumexp")
def logsumexp(t, x, dim, keepdim=False):
    most = largest(t, x, dim, True)
    y = t.formula(["add a b"], log_of_sum(t, x, dim)[1], most)
    return y if keepdim else t.reshape(y, t.call.shape)
