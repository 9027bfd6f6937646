"""Rows of what normalises."""

import math

from antichain.pytorch.operators.table import ROWS, given, within
from antichain.translation import Value, refuse_if


@ROWS.row("batch_norm")
def batch_norm(
    t, x, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5,
    cudnn_enabled=None, axis=1,
):
    if isinstance(x, Value) and not x.sampled:
        return norm_of_parameters(t, x, running_mean, weight, bias, training, eps)
    refuse_if((weight is None) != (bias is None), "batch_norm with a weight or a bias alone")
    # Evaluation would give each sample what the others of its micro-batch make of it.
    refuse_if(running_mean is None, "batch_norm without running statistics")
    refuse_if(momentum is None, "batch_norm with momentum None, a mean over all batches,")
    within("batch_norm with", eps, momentum)
    parts = given(weight=weight, bias=bias, running_mean=running_mean, running_var=running_var)
    options = {"eps": float(eps), "momentum": float(momentum)}
    if not training:
        options["fixed_statistics"] = True
    y = t.batch_norm(x, options, parts, axis)
    count = (running_mean.name.rpartition(".")[0] + ".num_batches_tracked").removeprefix(".")
    t.enter(count, "num_batches_tracked")
    t.buffers.append(count)
    return y


def norm_of_parameters(t, x, running_mean, weight, bias, training, eps):
    """Returns a weight 1 x K x …, of which each filter is normalised, as timm standardises weights."""
    once = training and running_mean is None and bias is None and x.shape[0] == 1
    refuse_if(not once, "batch_norm of a weight that is not standardised")
    filters = t.reshape(x, (x.shape[1], math.prod(x.shape[2:])), helper=True)
    y = t.group_norm(filters, x.shape[1], float(eps), {})
    if weight is not None:
        weight = t.reshape(t.tensor(weight), (x.shape[1], 1), helper=True)
        y = t.formula(["multiply a b"], y, weight)
    return t.reshape(y, x.shape)


@ROWS.row("layer_norm")
def layer_norm(t, x, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=None):
    over = list(normalized_shape)
    within("layer_norm with", eps)
    shown = over if len(over) > 1 or x.rank == 2 else []
    return t.layer_norm(x, -len(over), shown, float(eps), given(weight=weight, bias=bias))


@ROWS.row("rms_norm")
def rms_norm(t, x, weight, eps):
    options = {"eps": eps, "bias": False, "centred": False}
    return t.emit("layer_norm", [t.plain(x)], options, parts=given(weight=weight))


@ROWS.row("group_norm", samples=True)
def group_norm(t, x, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=None):
    refuse_if((weight is None) != (bias is None), "group_norm with a weight and without a bias")
    within("group_norm with", eps)
    return t.group_norm(x, num_groups, float(eps), given(weight=weight, bias=bias))


@ROWS.row("instance_norm", samples=True)
def instance_norm(
    t,
    x,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-5,
    cudnn_enabled=None,
):
    refuse_if(running_mean is not None, "instance_norm with running statistics")
    return group_norm(t, x, x.shape[1], weight, bias, eps)
