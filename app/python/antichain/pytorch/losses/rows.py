"""The table of what a loss computes: that of the networks' functions, and the losses of torch.nn."""

import math

from antichain.pytorch.losses.formulas import LogProbabilities, Term, Terms
from antichain.pytorch.operators import ROWS
from antichain.pytorch.operators.elementwise import FORMULAS
from antichain.pytorch.operators.table import sizes
from antichain.translation import Joined, Value, mapped, refuse_if

PYTORCHS_IGNORED = -100  # the label that cross_entropy ignores unless it is told another

LOSS_ROWS = ROWS.copy()

# What sums along axes is computed by nodes, of formulas, too.
OF_NODES = "amax amin cosine_similarity gather linalg_norm linalg_vector_norm logsumexp max min norm normalize"
for _name in [*OF_NODES.split(), "pairwise_distance", "scatter", "scatter.value", "softmax", "std", "var"]:

    def _of_nodes(t, *args, _row=ROWS[_name], _two=f"{_name}imum", **named):
        if any(hasattr(x, "shape") for x in (*args[1:2], *named.values())) and _two in ROWS:  # max(x, y)
            return LOSS_ROWS[_two](t, *args, **named)
        return _row(t.of_networks(), *mapped(t.computed_now, args), **mapped(t.computed_now, named))

    LOSS_ROWS.row(_name, raw=True)(_of_nodes)
for _names, _steps in FORMULAS.items():
    LOSS_ROWS.row(_names, raw=True)(lambda t, x, steps=_steps: t.formula(steps, x))


@LOSS_ROWS.row("mean", "mean.dim", raw=True)
def mean(t, x, *dim, axis=None, keepdim=False, dtype=None, **named):
    return summed(t, x, "mean", dim, named.get("dim", axis), keepdim)


@LOSS_ROWS.row("sum", "sum.dim_IntList", raw=True)
def sum_(t, x, *dim, axis=None, keepdim=False, dtype=None, **named):
    return summed(t, x, "sum", dim, named.get("dim", axis), keepdim)


def summed(t, x, reduction, dim, named, keep):
    keep = keep or any(d is True for d in dim)
    dim = [d for d in dim if not isinstance(d, bool)]
    x = t.tensor(x) if isinstance(x, LogProbabilities) else x
    given = sizes(dim) if dim else named
    given = [] if given is None else given if isinstance(given, (tuple, list)) else [given]
    return t.summed(x, [int(axis) % x.rank for axis in given], reduction, keep)


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
    refuse_if(getattr(target, "node", "") not in t.is_whole, "cross_entropy of targets that are computed")
    if reduction == "none":
        odd = weight is not None or label_smoothing or options or not t.is_whole[target.node]
        refuse_if(odd, "cross_entropy with reduction none besides that of classes without weights")
        return of_each(t, x, target, ignore_index)
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


def of_each(t, x, target, ignored):
    """Returns the cross-entropy of each label, as a formula of what is computed."""
    network = t.of_networks()
    said = ROWS["log_softmax"](network, x, dim=1)
    places = t.reshape(target, (x.shape[0], 1, *x.shape[2:]), helper=True)
    picked = t.reshape(ROWS["gather"](network, said, 1, places), target.shape, helper=True)
    return t.formula([f"equal b {float(ignored)!r}", "negate a", "where s0 0 s1"], picked, target)


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


@LOSS_ROWS.row("binary_cross_entropy", raw=True)
def binary_cross_entropy(t, x, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    refuse_if(weight is not None, "binary_cross_entropy with a weight")
    # PyTorch has no logarithm below -100.
    yes = ["less a 1e-38", "clamp a 1e-38 1", "log s1", "where s0 -100 s2"]
    no = ["subtract 1 a", "less s4 1e-38", "clamp s4 1e-38 1", "log s6", "where s5 -100 s7"]
    mixed = ["subtract s8 s3", "multiply b s9", "subtract s10 s8"]
    return t.reduced(t.formula([*yes, *no, *mixed], x, target), reduction)


@LOSS_ROWS.row("poisson_nll_loss", raw=True)
def poisson_nll_loss(
    t, x, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"
):
    refuse_if(full, "poisson_nll_loss with full=True")
    steps = ["exp a", "multiply a b", "subtract s0 s1"]
    if not log_input:
        steps = [f"add a {float(eps)!r}", "log s0", "multiply b s1", "subtract a s2"]
    return t.reduced(t.formula(steps, x, target), reduction)


@LOSS_ROWS.row("gaussian_nll_loss", raw=True)
def gaussian_nll_loss(t, x, target, var, full=False, eps=1e-6, reduction="mean"):
    steps = ["maximum c s", "log s0", "subtract a b", "multiply s2 s2", "divide s3 s0", "add s1 s4"]
    steps = [step.replace("c s", f"c {float(eps)!r}") for step in steps]
    constant = math.log(2 * math.pi) / 2 if full else 0.0
    steps += ["multiply s5 0.5", f"add s6 {constant!r}"]
    return t.reduced(t.formula(steps, x, target, var), reduction)


@LOSS_ROWS.row("margin_ranking_loss", raw=True)
def margin_ranking_loss(
    t, input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"
):
    steps = ["subtract b a", "multiply c s0", f"add s1 {float(margin)!r}", "relu s2"]
    return t.reduced(t.formula(steps, input1, input2, target), reduction)


@LOSS_ROWS.row("soft_margin_loss", raw=True)
def soft_margin_loss(t, x, target, size_average=None, reduce=None, reduction="mean"):
    return t.reduced(t.formula(["multiply a b", "negate s0", "softplus s1"], x, target), reduction)


@LOSS_ROWS.row("hinge_embedding_loss", raw=True)
def hinge_embedding_loss(t, x, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    steps = ["subtract c a", "relu s0", "equal b 1", "where s2 a s1"]
    return t.reduced(t.formula(steps, x, target, float(margin)), reduction)


@LOSS_ROWS.row("cosine_embedding_loss", raw=True)
def cosine_embedding_loss(
    t, input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"
):
    cosine = LOSS_ROWS["cosine_similarity"](t, input1, input2, dim=1, eps=1e-6)
    steps = ["subtract 1 a", f"subtract a {float(margin)!r}", "relu s1", "equal b 1", "where s3 s0 s2"]
    return t.reduced(t.formula(steps, cosine, target), reduction)


@LOSS_ROWS.row("triplet_margin_loss", raw=True)
def triplet_margin_loss(
    t, anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None, reduce=None,
    reduction="mean",
):  # fmt: skip
    refuse_if(swap, "triplet_margin_loss with swap=True")
    near, far = (LOSS_ROWS["pairwise_distance"](t, anchor, x, p, eps) for x in (positive, negative))
    return t.reduced(t.formula(["subtract a b", "add s0 c", "relu s1"], near, far, float(margin)), reduction)
