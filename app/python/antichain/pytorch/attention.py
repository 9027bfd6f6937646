"""Attention, rotary positions, RMSNorm and GELU by tanh as one call each, also where the user's code computes
them step by step: `fused` finds the steps in what was captured.

A mask is understood where it is constant: all may be seen, or none of the later positions.
"""

import dataclasses
import math

import torch

from antichain.pytorch.calls import Call, Kind, Tensor, map_references, needed, references, replay

HIDDEN = -1e4  # a score that is no larger hides a position
NEAR = 1e-4  # to which numbers of tables agree, which were computed in float32


def attention(query, key, value, causal=False, dropout_p=0.0, scale=None):
    """Does what layers/attention.h says, for heads that are the second axis."""
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = torch.matmul(query * scale, key.transpose(-2, -1))
    if causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, -math.inf)
    weights = scores.softmax(-1)
    return torch.matmul(torch.nn.functional.dropout(weights, dropout_p) if dropout_p else weights, value)


def rotary(x, theta):
    """Does what layers/rotary.h says, for heads that are the second axis, with pairs i and i + D/2."""
    half = x.shape[-1] // 2
    frequencies = theta ** (-torch.arange(half, dtype=torch.float64) / half)
    angles = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] * frequencies
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def rms_norm(x, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def gelu(x, approximate):
    return torch.nn.functional.gelu(x, approximate=approximate)


def causal(hidden):
    """Returns whether truth values, … x T x T, hide the later positions, or None where they hide others, or
    none."""
    if not hidden.any():
        return False
    rows, columns = hidden.shape[-2:]
    later = torch.ones(rows, columns, dtype=torch.bool).triu(1)
    same = rows == columns and bool((hidden == later).all())
    return True if same else None


def hides(mask):
    """Returns what an additive mask, or one that is true where scores count, hides; or None where it changes
    scores otherwise."""
    if mask.dtype is torch.bool:
        return ~mask
    hidden = mask <= HIDDEN
    return hidden if bool((mask[~hidden] == 0).all()) else None


@dataclasses.dataclass
class Scores:
    """What a softmax is taken of, in parts: matmul(q, k transposed) · factor, with what is hidden."""

    q: object = None
    k: object = None
    factor: float = 1.0
    causal: bool = False


class Finder:
    """Looks at the calls behind one, each of which it knows by what it computes."""

    def __init__(self, captured):
        self.captured = captured
        self.given = {}
        self.steps = []  # dropouts that are steps of what was found

    def constant(self, x):
        """Returns the numbers of what is computed of constants and buffers alone, or None."""
        if isinstance(x, Tensor):
            known = x.kind in (Kind.constant, Kind.buffer)
            return self.captured.tensors[x.name].detach() if known else None
        if not isinstance(x, Call):
            return None
        if id(x) not in self.given:
            calls = needed(self.captured.calls, [x])
            read = [r for c in calls for r in references(c) if isinstance(r, Tensor)]
            fixed = read and all(r.kind in (Kind.constant, Kind.buffer) for r in read)
            values = replay(calls, self.captured.tensors, {}) if fixed else ()
            found = [value for _, value in values]
            self.given[id(x)] = found[-1].detach() if found else None
        return self.given[id(x)]

    def transposed(self, x):
        """Returns what x is the transpose of in its last two axes, or None."""
        if not isinstance(x, Call) or not x.shape:
            return None
        rank, of = len(x.shape), [*x.args[1:], *x.kwargs.values()]
        if x.key in ("mT", "t") or x.key == "transpose" and {a % rank for a in of} == {rank - 2, rank - 1}:
            return x.args[0]
        if x.key == "permute":
            order = of[0] if len(of) == 1 else of
            if [a % rank for a in order] == [*range(rank - 2), rank - 1, rank - 2]:
                return x.args[0]
        return None

    def scores(self, x):
        """Returns the Scores that x is, or None."""
        if not isinstance(x, Call):
            return None
        args = [*x.args, *x.kwargs.values()]
        if x.key in ("matmul", "bmm"):
            k = self.transposed(args[1])
            return None if k is None else Scores(args[0], k)
        if x.key in ("mul", "div") and isinstance(args[1], (int, float)) and args[1]:
            return self.with_(args[0], factor=args[1] if x.key == "mul" else 1 / args[1])
        if x.key == "masked_fill" and isinstance(args[2], (int, float)) and args[2] <= HIDDEN:
            hidden = self.constant(args[1])
            return None if hidden is None else self.with_(args[0], hidden)
        if x.key == "add" and len(args) == 2:
            mask = self.constant(args[1])
            hidden = hides(mask) if mask is not None and mask.dim() > 1 else None
            return None if hidden is None else self.with_(args[0], hidden)
        if x.key == "where" and len(args) == 3:
            low, seen = self.constant(args[2]), self.constant(args[0])
            low = args[2] if isinstance(args[2], (int, float)) else low
            if seen is None or low is None or bool(torch.as_tensor(low).max() > HIDDEN):
                return None
            return self.with_(args[1], ~seen.bool())
        return None

    def with_(self, x, hidden=None, factor=1.0):
        found = self.scores(x)
        if found is None:
            return None
        if hidden is not None:
            hidden = hidden.bool()
            later = causal(hidden) if hidden.dim() > 1 else None
            if later is None:
                return None
            found.causal = found.causal or later
        found.factor *= factor
        return found

    def attention(self, call):
        """Returns a call of attention in the place of the product that ends it, or None."""
        if call.key not in ("matmul", "bmm") or len(call.args) + len(call.kwargs) != 2:
            return None
        weights, value = [*call.args, *call.kwargs.values()]
        p, step = 0.0, []
        if isinstance(weights, Call) and weights.key == "dropout":
            p = dict(zip(("p", "training"), weights.args[1:])) | weights.kwargs
            p = p.get("p", 0.5) if p.get("training", p.get("train", True)) else 0.0
            step, weights = [weights], weights.args[0]
        if not isinstance(weights, Call) or weights.key != "softmax" or not weights.shape:
            return None
        dim = {**dict(zip(("dim",), weights.args[1:])), **weights.kwargs}.get("dim")
        if dim not in (-1, len(weights.shape) - 1) or len(weights.shape) < 3:
            return None
        found = self.scores(weights.args[0])
        if found is None:
            return None
        self.steps += step
        options = {"causal": found.causal, "dropout_p": p, "scale": found.factor}
        return dataclasses.replace(
            call, key="attention", function=attention, args=(found.q, found.k, value), kwargs=options
        )

    def gelu(self, call):
        """Returns a call of gelu in the place of x · (1 + tanh(√(2/π) · (x + 0.044715 x³))) / 2, whatever its
        steps, or None. They are it where they give the same on some numbers."""
        steps, open_calls, sources = [], [call], {}
        while open_calls and len(steps) < 10:
            of = open_calls.pop()
            if isinstance(of, Call) and of.key in ("add", "mul", "pow", "tanh") and of.shape == call.shape:
                steps.append(of)
                open_calls += [r for r in references(of) if r not in steps]
            else:
                sources[id(of)] = of
        if call.key != "mul" or open_calls or len(sources) != 1 or not any(c.key == "tanh" for c in steps):
            return None
        (x,) = sources.values()
        numbers = torch.linspace(-4, 4, 33, dtype=torch.float64)
        given = [c for c in self.captured.calls if c in steps]
        *_, (_, y) = replay(given, {}, {}, of={id(x): numbers})
        if not torch.allclose(y, gelu(numbers, "tanh"), 0, 1e-6):
            return None
        options = {"approximate": "tanh"}
        return dataclasses.replace(call, key="gelu", function=gelu, args=(x,), kwargs=options)

    def half(self, x, of, first):
        """Says whether x is the first or the last half of a tensor's last axis."""
        if not isinstance(x, Call) or x.key != "slice" or x.args[0] is not of:
            return False
        given = {"dim": 0, "start": 0, "end": None, "step": 1} | x.kwargs
        given |= dict(zip(("dim", "start", "end", "step"), x.args[1:]))
        extent = of.shape[-1]
        begin, end, _ = slice(given["start"], given["end"]).indices(extent)
        halves = (0, extent // 2) if first else (extent // 2, extent)
        return given["dim"] % len(of.shape) == len(of.shape) - 1 and (begin, end) == halves

    def turned(self, call):
        """Returns the tensor and the table of a product with a table."""
        if not isinstance(call, Call) or call.key != "mul":
            return None
        a, b = [*call.args, *call.kwargs.values()]
        table = self.constant(b)
        return None if table is None or table.dim() < 2 else (a, table)

    def rotary(self, call):
        """Returns a call of rotary in the place of x · cos + (−x's last half, x's first half) · sin, or
        None."""
        if call.key != "add" or len(call.args) + len(call.kwargs) != 2 or len(call.shape or ()) != 4:
            return None
        terms = [self.turned(x) for x in (*call.args, *call.kwargs.values())]
        if None in terms:
            return None
        (x, cos), (halves, sin) = terms
        if not isinstance(halves, Call) or halves.key != "cat" or len(halves.args[0]) != 2:
            return None
        last, first = halves.args[0]
        turned = isinstance(last, Call) and last.key == "neg" and self.half(last.args[0], x, False)
        if not turned or not self.half(first, x, True):
            return None
        theta = theta_of(cos, sin, call.shape)
        if theta is None:
            return None
        return dataclasses.replace(call, key="rotary", function=rotary, args=(x, theta), kwargs={})

    def rms_norm(self, call):
        """Returns a call of rms_norm in the place of weight · (x · rsqrt(mean(x²) + eps)), or None."""
        if call.key != "mul":
            return None
        a, b = (*call.args, *call.kwargs.values())
        weight, y = (a, b) if isinstance(a, Tensor) else (b, a)
        own = isinstance(weight, Tensor) and weight.kind is Kind.parameter and len(weight.shape) == 1
        if not own or not isinstance(y, Call) or y.key != "mul":
            return None
        x, root = (*y.args, *y.kwargs.values())
        if not isinstance(root, Call) or root.key != "rsqrt" or root.args[0].key != "add":
            return None
        mean, eps = (*root.args[0].args, *root.args[0].kwargs.values())
        if not isinstance(mean, Call) or mean.key != "mean" or not isinstance(eps, float):
            return None
        given = dict(zip(("dim", "keepdim"), mean.args[1:])) | mean.kwargs
        dim = given.get("dim")
        dim = dim[0] if isinstance(dim, (list, tuple)) and len(dim) == 1 else dim
        square = mean.args[0]
        power = isinstance(square, Call) and square.key == "pow" and [*square.args, *square.kwargs.values()]
        if dim not in (-1, len(call.shape) - 1) or not given.get("keepdim") or not power:
            return None
        if power[0] is not x or power[1] != 2:
            return None
        return dataclasses.replace(call, key="rms_norm", function=rms_norm, args=(x, weight, eps), kwargs={})


def theta_of(cos, sin, shape):
    """Returns the base of rotary positions from 0 on whose tables these are, or None."""
    length, width = shape[-2:]
    fits = all(table.shape[-2:] == (length, width) for table in (cos, sin))
    if not fits or length < 2 or width < 4 or width % 2:
        return None
    half = width // 2
    cos, sin = (table.double().reshape(-1, length, width) for table in (cos, sin))
    first = math.atan2(sin[0, 1, 1], cos[0, 1, 1])
    if not first > 0:
        return None
    theta = float(f"{first ** -half:.5g}")
    angles = torch.arange(length, dtype=torch.float64)[:, None] * theta ** (
        -torch.arange(half, dtype=torch.float64) / half
    )
    angles = torch.cat((angles, angles), -1)
    same = torch.allclose(cos, angles.cos().expand_as(cos), 0, NEAR)
    return theta if same and torch.allclose(sin, angles.sin().expand_as(sin), 0, NEAR) else None


def fused(captured):
    """Returns what was captured with these calls in the place of their last steps. A dropout that is one of
    their steps draws no numbers of its own any more."""
    finder = Finder(captured)
    instead = {}

    def latest(r):
        return instead.get(id(r), r)

    calls = []
    for call in captured.calls:
        found = finder.attention(call) or finder.rotary(call)
        found = found or finder.rms_norm(call) or finder.gelu(call)
        new = found or call
        args, kwargs = map_references(latest, (new.args, new.kwargs))
        if found or (args, kwargs) != (call.args, call.kwargs):
            new = dataclasses.replace(new, args=args, kwargs=kwargs)
            instead[id(call)] = new
        calls.append(new)
    outputs = [latest(output) for output in captured.outputs]
    used = {id(call) for call in needed(calls, outputs)}
    left_out, kept = {id(latest(step)) for step in finder.steps} - used, []
    for call in calls:
        if id(call) in left_out or any(id(r) in left_out for r in references(call)):
            left_out.add(id(call))
        else:
            kept.append(call)
    return dataclasses.replace(captured, calls=kept, outputs=outputs)
