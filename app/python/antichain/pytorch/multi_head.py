"""nn.MultiheadAttention with the samples first throughout, which stands in for PyTorch's own code while a
module is captured: that joins samples and heads, and computes queries, keys and values as one tensor whose
first axis they are."""

import functools
import types

import torch
import torch.nn.functional as functional


def _by_heads(x, heads):
    """Returns N x T x C as N x heads x T x C / heads."""
    return x.reshape(x.shape[0], x.shape[1], heads, x.shape[2] // heads).transpose(1, 2)


def _mask(m, attn_mask, key_padding_mask, query):
    """Returns the masks as one, added to scores, or None."""
    if key_padding_mask is not None:
        padding = key_padding_mask[:, None, None, :]
        if padding.dtype is torch.bool:
            padding = torch.zeros_like(padding, dtype=query.dtype).masked_fill(padding, float("-inf"))
        return padding if attn_mask is None else padding + _mask(m, attn_mask, None, query)
    if attn_mask is None:
        return None
    if attn_mask.dtype is torch.bool:  # true is hidden
        attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill(attn_mask, float("-inf"))
    return attn_mask if attn_mask.dim() == 2 else attn_mask.unflatten(0, (-1, m.num_heads))


def _projected(m, query, key, value):
    """Returns queries, keys and values."""
    bias, width = m.in_proj_bias, m.embed_dim
    if m._qkv_same_embed_dim and query is key and key is value:
        return functional.linear(query, m.in_proj_weight, bias).split(width, -1)
    if m._qkv_same_embed_dim:
        weights = [m.in_proj_weight[i * width : (i + 1) * width] for i in range(3)]
    else:
        weights = [m.q_proj_weight, m.k_proj_weight, m.v_proj_weight]
    biases = [None if bias is None else bias[i * width : (i + 1) * width] for i in range(3)]
    return [functional.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases)]


def _forward(
    m, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None,
    average_attn_weights=True, is_causal=False,
):
    alike = query is key and key is value
    if not m.batch_first:
        query = query.transpose(0, 1)
        key, value = (query, query) if alike else (key.transpose(0, 1), value.transpose(0, 1))
    q, k, v = (_by_heads(x, m.num_heads) for x in _projected(m, query, key, value))
    mask = _mask(m, attn_mask, key_padding_mask, query)
    p = m.dropout if m.training else 0.0
    scores = torch.matmul(q, k.transpose(-2, -1)) * (q.shape[-1] ** -0.5)
    scores = scores if mask is None else scores + mask
    weights = scores.softmax(-1)
    weights = functional.dropout(weights, p) if p else weights
    y = torch.matmul(weights, v)
    y = functional.linear(y.transpose(1, 2).reshape(query.shape), m.out_proj.weight, m.out_proj.bias)
    y = y if m.batch_first else y.transpose(0, 1)
    return y, (weights.mean(1) if average_attn_weights else weights) if need_weights else None


def attend_simply(module):
    """Has each nn.MultiheadAttention of a module, a copy, compute so, where it adds no keys of its own."""
    for m in module.modules():
        if type(m) is torch.nn.MultiheadAttention and m.bias_k is None and not m.add_zero_attn:
            own = m.forward

            def forward(m, query, *args, own=own, **kwargs):
                return (own if query.dim() != 3 else functools.partial(_forward, m))(query, *args, **kwargs)

            m.forward = types.MethodType(forward, m)
