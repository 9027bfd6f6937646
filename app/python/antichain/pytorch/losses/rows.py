"""The table of what a loss computes: that of the networks' functions, and the losses of torch.nn."""

from antichain.pytorch.losses.formulas import LogProbabilities, PartialSum, Term, Terms
from antichain.pytorch.operators import ROWS
from antichain.pytorch.operators.elementwise import FORMULAS
from antichain.pytorch.operators.table import sizes
from antichain.translation import Joined, Value, refuse_if

PYTORCHS_IGNORED = -100  # the label that cross_entropy ignores unless it is told another

LOSS_ROWS = ROWS.copy()
for _names, _steps in FORMULAS.items():
    LOSS_ROWS.row(_names, raw=True)(lambda t, x, steps=_steps: t.formula(steps, x))


@LOSS_ROWS.row("mean", "mean.dim", raw=True)
def mean(t, x, *dim, axis=None, keepdim=False, dtype=None, **named):
    return summed(t, x, "mean", dim, named.get("dim", axis))


@LOSS_ROWS.row("sum", "sum.dim_IntList", raw=True)
def sum_(t, x, *dim, axis=None, keepdim=False, dtype=None, **named):
    return summed(t, x, "sum", dim, named.get("dim", axis))


def summed(t, x, reduction, dim, named):
    dim = [d for d in dim if not isinstance(d, bool)]
    given = sizes(dim) if dim else named
    given = [] if given is None else given if isinstance(given, (tuple, list)) else [given]
    rank = (x.of if isinstance(x, PartialSum) else x).rank
    return t.summed(x, [int(axis) % rank for axis in given], reduction)


@LOSS_ROWS.row("log_softmax", raw=True)
def log_softmax(t, x, dim=None, _stacklevel=None, dtype=None):
    x = t.plain(x)
    refuse_if(dim is None or t.axis(x, dim) != 1, f"log_softmax over axis {dim}, not the classes'")
    return LogProbabilities(x)


def last_to_second(x):
    """Returns N x K x T … as N x T … x K."""
    return x.permuted((0, *range(2, x.rank), 1))


@LOSS_ROWS.row("cross_entropy", "cross_entropy_loss", raw=True, joined=True)
def cross_entropy(
    t, x, target, weight=None, size_average=None, ignore_index=PYTORCHS_IGNORED, reduce=None,
    reduction="mean", label_smoothing=0.0,
):
    x = x.of if isinstance(x, LogProbabilities) else x  # log_softmax of log_softmax is the same
    options = {}
    if isinstance(x, Joined) or isinstance(target, Joined):
        ranks = [(of.axes, of.rank) if isinstance(of, Joined) else None for of in (x, target)]
        joined = None not in ranks and ranks[0][0] == ranks[1][0] and (ranks[0][1], ranks[1][1]) == (2, 1)
        refuse_if(not joined, "cross_entropy of positions that are joined otherwise")
        x, target, options["classes_last"] = x.of, target.of, True
    elif isinstance(x, Value) and x.rank > 2 and not x.plain and last_to_second(x).plain:
        x, options["classes_last"] = last_to_second(x), True
    x = t.plain(x)
    reduction = {0: "none", 1: "mean", 2: "sum"}.get(reduction, reduction)
    refuse_if(reduction == "none", "cross_entropy with reduction none")
    refuse_if(getattr(target, "node", "") not in t.is_whole, "cross_entropy of targets that are computed")
    if weight is not None:
        options["class_weights"] = t.numbers(weight, "a weight").tolist()
    if t.is_whole[target.node] and (x.rank > 2 or ignore_index != PYTORCHS_IGNORED):
        options["ignore_index"] = int(ignore_index)
    if label_smoothing:
        options["label_smoothing"] = float(label_smoothing)
    if reduction != "mean":
        options["reduction"] = reduction
    shares = not t.is_whole[target.node]
    refuse_if(shares and x.rank > 2, "cross_entropy of shares of classes for each position")
    return Terms([Term("softmax_cross_entropy", (x.node, target.node), options)])


@LOSS_ROWS.row("nll_loss", "nll_loss_nd", "nll_loss2d", raw=True, joined=True)
def nll_loss(
    t, x, target, weight=None, size_average=None, ignore_index=PYTORCHS_IGNORED, reduce=None, reduction="mean"
):
    refuse_if(not isinstance(x, LogProbabilities), "nll_loss of anything but a log_softmax over the classes")
    return cross_entropy(t, x, target, weight, ignore_index=ignore_index, reduction=reduction)


@LOSS_ROWS.row("broadcast_tensors", raw=True)
def broadcast_tensors(t, tensors, *more):
    return tuple(tensors) if isinstance(tensors, (tuple, list)) else (tensors, *more)


# Losses of two tensors, element by element: steps of a (the output), b (the target) and c (a number).
SQUARES = ["subtract a b", "multiply s0 s0"]
ABSOLUTE = ["subtract a b", "abs s0"]


@LOSS_ROWS.row("mse_loss", raw=True)
def mse_loss(t, x, target, size_average=None, reduce=None, reduction="mean", weight=None):
    refuse_if(weight is not None, "mse_loss with a weight")
    return t.reduced(t.formula(SQUARES, x, target), reduction)


@LOSS_ROWS.row("l1_loss", raw=True)
def l1_loss(t, x, target, size_average=None, reduce=None, reduction="mean", weight=None):
    refuse_if(weight is not None, "l1_loss with a weight")
    return t.reduced(t.formula(ABSOLUTE, x, target), reduction)


@LOSS_ROWS.row("huber_loss", raw=True)
def huber_loss(t, x, target, reduction="mean", delta=1.0, weight=None):
    refuse_if(weight is not None, "huber_loss with a weight")
    near = f"clamp s0 {-float(delta)!r} {float(delta)!r}"
    steps = ["subtract a b", near, "multiply s1 0.5", "subtract s0 s2", "multiply s1 s3"]
    return t.reduced(t.formula(steps, x, target), reduction)


@LOSS_ROWS.row("smooth_l1_loss", raw=True)
def smooth_l1_loss(t, x, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    if beta == 0:
        return l1_loss(t, x, target, reduction=reduction)
    huber = huber_loss(t, x, target, "none", beta)
    return t.reduced(t.formula(["divide a b"], huber, float(beta)), reduction)


@LOSS_ROWS.row("binary_cross_entropy_with_logits", raw=True)
def binary_cross_entropy_with_logits(
    t, x, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    refuse_if(weight is not None, "binary_cross_entropy_with_logits with a weight")
    steps = ["subtract 1 b", "multiply s0 a", "negate a", "softplus s2"]
    if pos_weight is None:
        return t.reduced(t.formula([*steps, "add s1 s3"], x, target), reduction)
    more = ["subtract c 1", "multiply s4 b", "add s5 1", "multiply s6 s3", "add s1 s7"]
    return t.reduced(t.formula([*steps, *more], x, target, pos_weight), reduction)


@LOSS_ROWS.row("kl_div", raw=True, samples=True)
def kl_div(t, x, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    steps = ["log b", "subtract s0 a", "multiply b s1", "greater b 0", "where s3 s2 0"]
    if log_target:
        steps = ["exp b", "subtract b a", "multiply s0 s1"]
    all_of = t.formula(steps, x, target)
    if reduction == "batchmean":
        return t.terms(all_of, "mean_of_samples")
    return t.reduced(all_of, reduction)
