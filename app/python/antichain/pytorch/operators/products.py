"""Rows of products of matrices, attention, and embeddings."""

import math

import torch

from antichain.pytorch.attention import causal as hides_later, hides
from antichain.pytorch.calls import Kind, Tensor
from antichain.pytorch.operators.reductions import sum_of
from antichain.pytorch.operators.shapes import beside_others, taken
from antichain.pytorch.operators.table import ROWS
from antichain.pytorch.translate import parameter
from antichain.translation import Looked, Value, Widened, natural, only, refuse_if


@ROWS.row("matmul", "bmm", "mm", "mv", raw=True)
def matmul(t, a, *b, **named):
    (b,) = (*b, *named.values())
    own = isinstance(b, Tensor) and b.kind is Kind.parameter and len(b.shape) == 2
    if own and isinstance(a, Value) and a.sampled:
        return t.linear(a, b.shape[1], {"weight": b}, in_first=True)
    a, b = t.tensor(a), t.tensor(b)
    if a.sampled == b.sampled:
        vector = b.rank == 1
        b = t.reshape(b, (*b.shape, 1), helper=True) if vector else b
        y = t.matmul(a, b)
        return t.reshape(y, y.shape[:-1], helper=True) if vector else y
    weight, x = (a, b) if b.sampled else (b, a)
    refuse_if(weight.rank != 2, f"a product with a parameter of {weight.rank} axes")
    if a.sampled:
        return t.linear(x, b.shape[1], {"weight": b.permuted((1, 0))})
    turned = (*natural(x.rank - 2), x.rank - 1, x.rank - 2)
    return t.linear(x.permuted(turned), a.shape[0], {"weight": a}).permuted(turned)


@ROWS.row("baddbmm", "addmm", raw=True)
def addmm(t, input, *factors, beta=1, alpha=1, **named):
    only("a sum of products with a factor", (beta, alpha), (1, 1))
    x, weight = (*factors, *named.values())
    own = all(isinstance(p, Tensor) and p.kind is Kind.parameter for p in (input, weight))
    if own and input.shape == weight.shape[1:] and isinstance(x, Value) and x.sampled:
        return t.linear(x, weight.shape[1], {"weight": weight, "bias": input}, in_first=True)
    return t.formula(["add a b"], input, matmul(t, *factors, *named.values()))


@ROWS.row("scaled_dot_product_attention", raw=True)
def scaled_dot_product_attention(
    t, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    numbers = t.constants.get(attn_mask.name) if isinstance(attn_mask, Tensor) else None
    if numbers is not None:
        hidden = hides(numbers)
        name = "" if attn_mask.name.startswith("constant.") else f" {attn_mask.name}"
        said = f"an attention mask{name} that hides every position of some row"
        refuse_if(hidden is not None and hidden.all(-1).any(), said)
        later = None if hidden is None else hides_later(hidden)
        if later is not None:
            attn_mask, is_causal = None, is_causal or later
    if attn_mask is None:
        return t.attention(query, key, value, bool(is_causal), dropout_p, scale)
    refuse_if(is_causal, "attention that is causal and has another mask, too,")
    query, key, value = (t.tensor(x) for x in (query, key, value))
    turned = (*natural(query.rank - 2), query.rank - 1, query.rank - 2)
    scores = t.matmul(t.formula(["multiply a b"], query, scale), key.permuted(turned))
    mask = attn_mask.of if isinstance(attn_mask, Widened) else attn_mask
    given = t.call.kwargs["attn_mask"]
    seen = numbers.dtype is torch.bool if numbers is not None else getattr(given, "truth", False)
    steps = ["where b a c"] if seen else ["add a b"]
    scores = t.formula(steps, scores, mask, *[-math.inf] * seen)
    return t.matmul(t.dropout(t.softmax(scores, scores.rank - 1), "dropout", dropout_p), value)


@ROWS.row("attention", raw=True)
def attention(t, query, key, value, causal=False, dropout_p=0.0, scale=None):
    return t.attention(query, key, value, causal, dropout_p, scale)


@ROWS.row("rotary")
def rotary(t, x, theta):
    whole, heads = t.with_heads(x)
    return t.by_heads(t.emit("rotary", [whole], {"heads": heads, "theta": theta}), x)


@ROWS.row("embedding", raw=True)
def embedding(
    t, first, indices=None, padding_idx=-1, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,
    sparse=False, weight=None,
):  # fmt: skip
    refuse_if(max_norm is not None, "embedding with max_norm")
    refuse_if(scale_grad_by_freq, "embedding with scale_grad_by_freq")
    # PyTorch's function for users has the weight behind the places.
    weight, indices = (first, indices) if weight is None else (weight, first)
    if isinstance(indices, Tensor) and indices.name in t.constants:
        places = t.constants[indices.name]
        same = places.dim() == 1 or places.dim() == 2 and bool((places == places[:1]).all())
        refuse_if(not same, "an embedding of numbers that are computed")
        return Looked(weight, tuple(places.reshape(-1)[-places.shape[-1] :].tolist()))
    ids = t.plain(t.tensor(indices))
    rows, width = parameter(weight, "a weight")
    options = {"rows": rows, "width": width}
    options |= {} if padding_idx in (None, -1) else {"padding": padding_idx % rows}
    return t.emit("embedding", [ids], options, parts={"weight": weight})


def with_rows(t, x, looked):
    """Returns x plus rows of a weight, which are the same for all samples."""
    places = looked.places[:1] if len(set(looked.places)) == 1 else looked.places
    return t.formula(["add a b"], x, taken(t, t.tensor(looked.weight), 0, places))


@ROWS.row("einsum", raw=True, samples=True)
def einsum(t, equation, *operands, tensors=(), path=None):
    operands = operands or tensors
    operands = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    given, _, result = equation.replace(" ", "").partition("->")
    given = given.split(",")
    odd = any(len(set(of)) < len(of) for of in (*given, result)) or "." in equation or "->" not in equation
    refuse_if(odd or len(given) != len(operands) or len(given) > 2, f"einsum of '{equation}'")
    terms = [*zip(given, beside_others(t, operands))]
    kept = [set(result).union(*(other for other in given if other is not own)) for own in given]
    # What one operand alone has is summed before.
    for i, (letters, x) in enumerate(terms):
        over = [axis for axis, letter in enumerate(letters) if letter not in kept[i]]
        if over:
            x = sum_of(t, x, dim=over)
        terms[i] = "".join(letter for letter in letters if letter in kept[i]), x
    if len(terms) == 1:
        return t.in_order(terms[0][1], [terms[0][0].index(letter) for letter in result])
    (first, a), (second, b) = terms if terms[0][1].sampled >= terms[1][1].sampled else terms[::-1]
    together = [letter for letter in first if letter in second and letter in result]
    inner = [letter for letter in first if letter in second and letter not in result]
    rows, columns = ([l for l in own if l in result and l not in together] for own in (first, second))
    extents = {**dict(zip(first, a.shape)), **dict(zip(second, b.shape))}

    def matrices(letters, x, *groups):
        x = x.permuted([letters.index(letter) for letter in sum(groups, [])])
        shape = [math.prod(extents[letter] for letter in group) for group in groups[1:]]
        return t.reshape(x, (*(extents[letter] for letter in groups[0]), *shape), helper=True)

    if a.sampled and not b.sampled:
        refuse_if(together, f"einsum of '{equation}' with a parameter that has an axis of the result, too,")
        weight = matrices(second, b, [], columns, inner)
        x = matrices(first, a, rows, inner)
        y = t.linear(x, weight.shape[0], {"weight": weight})
    else:
        y = t.matmul(matrices(first, a, together, rows, inner), matrices(second, b, together, inner, columns))
    letters = [*together, *rows, *columns]
    y = t.reshape(y, [extents[letter] for letter in letters], helper=True)
    return t.in_order(y, [letters.index(letter) for letter in result])
