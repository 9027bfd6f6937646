"""Rows of products of matrices, attention, and embeddings."""

import math

import torch

from antichain.pytorch.attention import causal as hides_later, hides
from antichain.pytorch.calls import Kind, Tensor
from antichain.pytorch.operators.reductions import largest, mean, sum_of
from antichain.pytorch.operators.shapes import beside_others, taken
from antichain.pytorch.operators.table import ROWS, is_number
from antichain.pytorch.translate import parameter
from antichain.translation import Joined, Looked, Value, Widened, natural, only, refuse_if


@ROWS.row("matmul", "bmm", "mm", "mv", raw=True)
def matmul(t, a, *b, **named):
    (b,) = (*b, *named.values())
    own = isinstance(b, Tensor) and b.kind is Kind.parameter and len(b.shape) == 2
    if own and isinstance(a, Value) and a.sampled:
        return t.linear(a, b.shape[1], {"weight": b}, in_first=True)
    a, b = t.tensor(a), t.tensor(b)
    see = any(x.sampled and x.order.index(0) >= x.rank - 2 for x in (a, b)) and a.sampled and b.sampled
    refuse_if(see and min(a.rank, b.rank) > 1, "a product in which samples see each other")
    before = [x.shape[:-2] for x in (a, b) if x.sampled or x.rank > 2]
    if len({*before}) > 1 and min(a.rank, b.rank) > 1:  # matrices are repeated as numbers are
        before = torch.broadcast_shapes(*before)
        a, b = (widened(t, x, (*before, *x.shape[-2:])) for x in (a, b))
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


def widened(t, x, shape):
    """Returns x repeated to a shape, as PyTorch repeats it."""
    if not x.sampled:
        x = t.reshape(x, (1,) * (len(shape) - x.rank) + x.shape, helper=True)
    refuse_if(x.rank != len(shape), f"matrices {x.shape} beside those of {shape}")
    return x if x.shape == tuple(shape) else t.tensor(Widened(x, tuple(shape)))


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
        if not same:
            found = taken(t, t.tensor(weight), 0, places.flatten().tolist())
            return t.reshape(found, (*places.shape, weight.shape[1]), helper=True)
        return Looked(weight, tuple(places.reshape(-1)[-places.shape[-1] :].tolist()))
    ids = t.plain(t.tensor(indices))
    rows, width = parameter(weight, "a weight")
    if ids.node in t.made:  # numbers that are computed: which of the rows it is
        refuse_if(rows > MOST_ROWS, f"an embedding of {rows} rows at places that are computed")
        refuse_if(padding_idx not in (None, -1), "an embedding with padding_idx at places that are computed")
        return t.linear(one_hot(t, ids, rows), width, {"weight": weight}, in_first=True)
    options = {"rows": rows, "width": width}
    options |= {} if padding_idx in (None, -1) else {"padding": padding_idx % rows}
    return t.emit("embedding", [ids], options, parts={"weight": weight})


MOST_ROWS = 4096  # of which places that are computed pick one, as a product


@ROWS.row("one_hot")
def one_hot(t, x, num_classes=-1):
    refuse_if(num_classes < 1, "one_hot without the number of classes")
    x = t.reshape(t.plain(x), (*x.shape, 1), helper=True)
    return t.formula(["equal a b"], x, places_along(t, x.rank, x.rank - 1, num_classes))


def places_along(t, rank, axis, extent):
    """Returns 0, 1, … along an axis, for tensors of so many."""
    return t.filled((t.batch, *(extent if a == axis else 1 for a in range(1, rank))), range(extent))


def place_along(t, what, x, axis, index):
    """Returns an index of one place of an axis of x, with the numbers of all its places."""
    index = t.tensor(index, "an index")
    fits = index.rank == x.rank and index.shape == (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    refuse_if(not fits, f"{what} of {x.shape} at {index.shape}, besides that of one place of an axis,")
    return index, places_along(t, x.rank, axis, x.shape[axis])


@ROWS.row("gather")
def gather(t, x, dim, index, sparse_grad=False):
    axis = t.axis(x, dim)
    index, places = place_along(t, "gather", x, axis, index)
    return sum_of(t, t.formula(["equal b c", "where s0 a 0"], x, index, places), dim=axis, keepdim=True)


@ROWS.row("scatter", "scatter.value", raw=True)
def scatter(t, x, dim, index, value=None, src=None):
    """Puts one number at one place of an axis."""
    x = t.constant_value(x, len(x.shape)) if isinstance(x, Tensor) else x
    number = value if src is None else src
    refuse_if(not is_number(number), "scatter of anything but a number")
    index, places = place_along(t, "scatter", x, t.axis(x, dim), index)
    return t.formula(["equal b c", f"where s0 {float(number)!r} a"], x, index, places)


@ROWS.row("embedding_bag", raw=True, joined=True)
def embedding_bag(
    t, first, second=None, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="mean",
    sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=None, **named,
):  # fmt: skip
    mode = ("sum", "mean", "max")[mode] if is_number(mode) else mode
    odd = [
        what
        for what, given in (("per_sample_weights", per_sample_weights), ("padding_idx", padding_idx))
        if given not in (None, -1)
    ]
    refuse_if(odd, f"embedding_bag with {', '.join(odd)}")
    second = named.get("weight", named.get("indices", second))
    own = isinstance(first, Tensor) and first.kind is Kind.parameter
    weight, places = (first, second) if own else (second, first)
    starts = t.constants.get(getattr(offsets, "name", None))
    if isinstance(places, Joined) and starts is not None:  # N x L as one axis, and where bags begin
        length = places.shape[0] // t.batch
        even = starts.tolist() == [*range(0, places.shape[0], length)]
        places = places.of if even and places.of.rank == 2 and places.lead == (0, 1) else places
    known = isinstance(places, Value) and places.rank == 2
    refuse_if(not known, "embedding_bag of bags of different sizes (give N x L)")
    rows = embedding(t, weight, places, max_norm=max_norm, scale_grad_by_freq=scale_grad_by_freq)
    of = {"sum": sum_of, "mean": mean, "max": lambda t, x, dim: largest(t, x, dim, False)}
    y = of[mode](t, rows, dim=1)
    return y if t.call.shape else (y, None)  # ATen's has more


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
    refuse_if(odd or len(given) != len(operands), f"einsum of '{equation}'")
    if len(given) > 2:  # two of them first
        rest = "".join(given[2:]) + result
        left = "".join(letter for letter in dict.fromkeys(given[0] + given[1]) if letter in rest)
        both = einsum(t, f"{given[0]},{given[1]}->{left}", *operands[:2])
        return einsum(t, f"{','.join([left, *given[2:]])}->{result}", both, *operands[2:])
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
    if a.sampled and not b.sampled and {*first} & {*second} & {*result}:
        b, second = widened(t, b, (t.batch, *b.shape)), first[a.order.index(0)] + second
    together = [letter for letter in first if letter in second and letter in result]
    inner = [letter for letter in first if letter in second and letter not in result]
    rows, columns = ([l for l in own if l in result and l not in together] for own in (first, second))
    extents = {**dict(zip(first, a.shape)), **dict(zip(second, b.shape))}

    def matrices(letters, x, *groups):
        x = x.permuted([letters.index(letter) for letter in sum(groups, [])])
        shape = [math.prod(extents[letter] for letter in group) for group in groups[1:]]
        return t.reshape(x, (*(extents[letter] for letter in groups[0]), *shape), helper=True)

    if a.sampled and not b.sampled and not together:
        weight = matrices(second, b, [], columns, inner)
        x = matrices(first, a, rows, inner)
        y = t.linear(x, weight.shape[0], {"weight": weight})
    else:
        y = t.matmul(matrices(first, a, together, rows, inner), matrices(second, b, together, inner, columns))
    letters = [*together, *rows, *columns]
    y = t.reshape(y, [extents[letter] for letter in letters], helper=True)
    return t.in_order(y, [letters.index(letter) for letter in result])
