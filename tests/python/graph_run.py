"""Carries out a folder NAME.antichain with PyTorch in float64, from graph.json and the weights alone, and
compares what comes out with check.safetensors. So a translation is judged without the program.

Each operator is written here as layers/*.h says it; dropout and stochastic depth are left out.
"""

import functools
import json
import math
import pathlib

import torch
import torch.nn.functional as F

from antichain import safetensors
from antichain.graph_operators import DEFAULTS, four, pair

GRADIENTS = 1e-8  # by how much they may differ
RATE, STEPS = 1e-3, 5  # of the recorded steps, which are without momentum and decay
ACTIVATIONS = {
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "relu6": F.relu6,
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
}


def where(condition, y):
    assert condition
    return y


def windows(o):
    return [pair(o[name]) for name in ("kernel", "stride", "pad")]


def interpolate(o, x):
    align = {"align_corners": o["align_corners"]} if o["mode"] == "bilinear" else {}
    return F.interpolate(x, o.get("size"), o.get("scale"), o["mode"], recompute_scale_factor=False, **align)


def constant(o, x):
    values = torch.tensor(o["values"], dtype=torch.float64)
    sample = values.reshape(o["shape"]) if len(values) > 1 else values.expand(o["shape"] or 1)
    return sample.expand(len(x), *o["shape"])


def by_heads(x, heads):
    return x.unflatten(2, (heads, -1)).transpose(1, 2)


def attention(o, q, *more):
    kv_heads = o["kv_heads"] or o["heads"]
    if len(more) < 2:  # packed, perhaps with documents
        width = q.shape[2] // (o["heads"] + 2 * kv_heads)
        q, *more = *q.split([o["heads"] * width, *[kv_heads * width] * 2], 2), *more
    q, k, v = (by_heads(x, heads) for x, heads in zip((q, *more[:2]), (o["heads"], kv_heads, kv_heads)))
    k, v = (x.repeat_interleave(o["heads"] // kv_heads, 1) for x in (k, v))
    assert len(more) == 2, "documents are not written here"
    scores = q @ k.mT * o.get("scale", q.shape[-1] ** -0.5)
    if o["causal"]:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -math.inf)
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


def rotary(o, x):
    assert not o["interleaved"]
    x = by_heads(x, o["heads"])
    half = x.shape[-1] // 2
    places, pairs = (torch.arange(n, dtype=torch.float64) for n in (x.shape[2], half))
    angles = places[:, None] * o["theta"] ** (-pairs / half)
    a, b, cos, sin = x[..., :half], x[..., half:], angles.cos(), angles.sin()
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).transpose(1, 2).flatten(2)


# Operators without parameters, of their options and inputs.
PLAIN = {
    "attention": attention,
    "rotary": rotary,
    "activate": lambda o, x: ACTIVATIONS[o["function"]](x),
    "adaptive_average_pool": lambda o, x: F.adaptive_avg_pool2d(x, (o["h"], o["w"])),
    "add": lambda o, a, b: where(a.shape == b.shape, a + b),
    "average_pool": lambda o, x: F.avg_pool2d(x, *windows(o), o["ceil_mode"], o["count_include_pad"]),
    "concat": lambda o, *x: where(all(part.dim() == 4 for part in x), torch.cat(x, 1)),
    "constant": constant,
    "dropout": lambda o, x: where(0 < o["p"] < 1, x),
    "flatten": lambda o, x: where(x.dim() == 4, x.flatten(1)),
    "global_average_pool": lambda o, x: F.adaptive_avg_pool2d(x, 1),
    "interpolate": interpolate,
    "matmul": lambda o, a, b: torch.matmul(a.mT if o["transpose_a"] else a, b.mT if o["transpose_b"] else b),
    "max_pool": lambda o, x: F.max_pool2d(x, *windows(o), 1, o["ceil_mode"]),
    "mean": lambda o, x: where(0 < min(o["axes"]), x.mean(o["axes"], keepdim=o["keep_dims"])),
    "multiply": lambda o, a, b: where(
        a.shape == b.shape or a.dim() == 4 and b.shape == (*a.shape[:2], 1, 1), a * b
    ),
    "permute": lambda o, x: where(o["order"][0] == 0, x.permute(o["order"])),
    "relu": lambda o, x: F.relu(x),
    "reshape": lambda o, x: x.reshape(len(x), *o["shape"]),
    "slice": lambda o, x: where(
        o["axis"] > 0, x[(slice(None),) * o["axis"] + (slice(o["begin"], o["end"], o["step"]),)]
    ),
    "softmax": lambda o, x: where(x.dim() in (2, 4), x.softmax(1)),
    "stochastic_depth": lambda o, x: where(0 < o["p"] < 1 and o["drop"] in ("row", "batch", "channel"), x),
}


# These are the functions of layers/elementwise_table.inc.
FUNCTIONS = {
    **{
        name: getattr(torch, name)
        for name in (
            "abs add cos divide exp expm1 greater greater_equal less less_equal log log1p maximum minimum "
            "multiply not_equal relu sigmoid sin sqrt subtract tanh"
        ).split()
    },
    "clamp": lambda a, low, high: torch.clamp(a, float(low), float(high)),
    "elu": lambda a, alpha: torch.where(a > 0, a, alpha * torch.expm1(a)),
    "equal": torch.eq,
    "leaky_relu": lambda a, slope: torch.where(a > 0, a, a * slope),
    "mish": F.mish,
    "negate": torch.neg,
    "power": torch.pow,
    "softplus": F.softplus,
    "where": lambda a, b, c: torch.where(a != 0, b, c),
}


class GraphRun:
    computed = {}  # by the names that parameters have which are not
    def __init__(self, folder):
        self.folder = folder = pathlib.Path(folder)
        self.graph = json.loads((folder / "graph.json").read_text())
        self.check = {
            n: torch.from_numpy(a) for n, a in safetensors.read(folder / "check.safetensors").items()
        }
        state = {n: torch.from_numpy(a) for n, a in safetensors.read(folder / "weights.safetensors").items()}
        own = {entry["name"]: entry["is"] for entry in self.graph.get("state_dict", []) if "is" in entry}
        self.file_names = {own.get(n, n): n for n in state if f"gradient.{n}" in self.check}
        self.at_start = {own.get(n, n): t.double() for n, t in state.items()}
        self.buffers = {n: t.clone() for n, t in self.at_start.items()}
        self.parameters = {n: state[name].double().requires_grad_() for n, name in self.file_names.items()}
        self.kept = {own.get(n, n): state[n].double() for n in state}  # frozen parameters and buffers
        self.frozen = {own.get(n, n) for n in self.graph.get("frozen", [])}
        self.used = set()

    @functools.cached_property
    def shared(self):
        """The full names of parameters that earlier nodes have, by the names that nodes give them."""
        return {
            f"{node['name']}.{own}" if own else node["name"]: of
            for node in self.graph["nodes"]
            for own, of in node.get("shared", {}).items()
        }

    def parameter(self, name):
        if name in self.computed:
            return self.computed[name]
        name = self.shared.get(name, name)
        if name in self.parameters:
            self.used.add(name)
            return self.parameters[name]
        assert name in self.frozen, name
        return self.kept[name]

    def weights(self, node, bias=True):
        return self.parameter(node["name"] + ".weight"), (
            self.parameter(node["name"] + ".bias") if bias else None
        )

    def conv2d(self, node, o, x):
        weight, bias = self.weights(node, o["bias"])
        if o["matrix"]:
            assert weight.shape == (o["out"], x.shape[1])
            weight = weight[:, :, None, None]
        if o["line"]:
            weight = weight[:, :, None]
        assert weight.shape == (o["out"], x.shape[1] // o["groups"], *pair(o["kernel"]))
        above, left, below, right = four(o["pad"])
        x = F.pad(x, (left, right, above, below))
        return F.conv2d(x, weight, bias, pair(o["stride"]), 0, pair(o["dilation"]), o["groups"])

    def conv_transpose2d(self, node, o, x):
        stride, pad, more, dilation = (pair(o[n]) for n in ("stride", "pad", "output_pad", "dilation"))
        weight, bias = self.weights(node, o["bias"])
        weight = weight[:, :, None] if o["line"] else weight
        return F.conv_transpose2d(x, weight, bias, stride, pad, more, o["groups"], dilation)

    def embedding(self, node, o, ids):
        weight = self.parameter(node["name"] + ".weight")
        assert weight.shape == (o["rows"], o["width"])
        return F.embedding(ids.long(), weight, o.get("padding"))

    def linear(self, node, o, x):
        weight, bias = self.weights(node, o["bias"])
        weight = weight.T if o["in_first"] else weight
        assert weight.shape == (o["out"], x.shape[-1])
        return F.linear(x, weight, bias)

    def batch_norm(self, node, o, x):
        assert x.dim() == 4
        fixed = o["fixed_statistics"]
        buffers = [self.kept[f"{node['name']}.running_{part}"] if fixed else None for part in ("mean", "var")]
        weight, bias = self.weights(node) if o["affine"] else (None, None)
        return F.batch_norm(x, *buffers, weight, bias, not fixed, 0, o["eps"])

    def spectral_norm(self, node, o, x):
        u, v = (self.buffers[f"{node['name']}.{name}"] for name in "uv")
        matrix = x[0].flatten(1)
        for _ in range(o["iterations"]):
            v = F.normalize(matrix.detach().mT @ u, dim=0, eps=o["eps"])
            u = F.normalize(matrix.detach() @ v, dim=0, eps=o["eps"])
        self.buffers |= {f"{node['name']}.u": u, f"{node['name']}.v": v}
        return x / (u @ matrix @ v)

    def computed_operator(self, node, o, *x):
        """Computes the parameters of the operator, and then the operator."""
        own, results, computed = node["name"] + ".", [], {}

        def read(name):
            if name.startswith("s") and name[1:].isdigit():
                return results[int(name[1:])]
            is_buffer = any(buffer["name"] == name for buffer in o.get("buffers", []))
            return (self.buffers[own + name] if is_buffer else self.parameter(own + name))[None]

        for step in o["nodes"]:
            results.append(self.compute({**step, "name": node["name"]}, [read(i) for i in step["inputs"]]))
        for value in o["values"]:
            result = results[value["node"]]
            assert len(result) == 1
            computed[(own + value["parameter"]).removesuffix(".")] = result[0]
        self.computed = computed
        y = self.compute({**o["of"], "name": node["name"]}, x)
        self.computed = {}
        return y

    def layer_norm(self, node, o, x):
        weight, bias = self.weights(node, o["bias"]) if o["affine"] else (None, None)
        if not o["centred"]:
            assert bias is None and not o["channels"]
            axes = tuple(range(-len(o["over"] or (0,)), 0))
            y = x * torch.rsqrt(x.square().mean(axes, keepdim=True) + o["eps"])
            return y if weight is None else y * weight
        if o["channels"]:
            y = F.layer_norm(x.permute(0, 2, 3, 1), x.shape[1:2], weight, bias, o["eps"])
            return y.permute(0, 3, 1, 2)
        return F.layer_norm(x, o["over"] or x.shape[-1:], weight, bias, o["eps"])

    def group_norm(self, node, o, x):
        weight, bias = self.weights(node) if o["affine"] else (None, None)
        return F.group_norm(x, o["groups"], weight, bias, o["eps"])

    def class_token(self, node, o, x):
        return torch.cat([self.parameter(node["name"]).expand(len(x), 1, -1), x], 1)

    def gather(self, node, o, x):
        return x.index_select(o["axis"], torch.tensor(o["table"]))

    def layer_scale(self, node, o, x):
        return x * self.parameter(node["name"])

    def elementwise(self, node, o, *x):
        values = {f"x{i}": one for i, one in enumerate(x)}
        if "parameter" in o:
            p = self.parameter(node["name"])
            behind = 0 if o["parameter_axis"] < 0 else x[0].dim() - 1 - o["parameter_axis"]
            values["p"] = p[(..., *[None] * behind)]
        for i, step in enumerate(o["steps"]):
            name, *words = step.split()
            number = lambda word: torch.tensor(float(word), dtype=torch.float64)
            operands = [values[word] if word in values else number(word) for word in words]
            values[f"s{i}"] = FUNCTIONS[name](*operands).double()
        return values[f"s{len(o['steps']) - 1}"]

    def compute(self, node, inputs):
        """Returns the output of a node."""
        o = {**DEFAULTS.get(node["op"], {}), **node.get("options", {})}
        if node["op"] in PLAIN:
            return PLAIN[node["op"]](o, *inputs)
        made = self.computed_operator if node["op"] == "computed" else getattr(self, node["op"])
        return made(node, o, *inputs)

    def losses(self, compare=True):
        """Yields each loss, after it ran the nodes before and compared those that are recorded."""
        values = {i["name"]: self.check[f"input.{i['name']}"] for i in self.graph["inputs"]}
        for i in self.graph["inputs"]:
            assert list(values[i["name"]].shape[1:]) == i["shape"]
            if i["dtype"] == "float32":  # also of whole numbers and truth values
                values[i["name"]] = values[i["name"]].double()
        for node in self.graph["nodes"]:
            inputs = [values[i] for i in node["inputs"]]
            if node["op"] == "softmax_cross_entropy":
                o, labels = node.get("options", {}), inputs[1]
                labels = labels if labels.is_floating_point() else labels.long()
                logits = inputs[0].movedim(-1, 1) if o.get("classes_last") else inputs[0]
                more = {key: o[key] for key in ("label_smoothing", "ignore_index") if key in o}
                yield o.get("weight", 1) * F.cross_entropy(logits, labels, **more)
                continue
            assert node["name"] not in values
            values[node["name"]] = y = self.compute(node, inputs)
            recorded = self.check.get("node." + node["name"])
            if compare and recorded is not None:
                torch.testing.assert_close(
                    y.detach(), recorded, rtol=1e-9, atol=1e-9, msg=lambda text: f"{node}: {text}"
                )

    def compare(self, tolerance=GRADIENTS):
        """Asserts that every recorded number comes out again, and returns the largest relative error of the
        steps' losses.

        The tolerance is a thousand times what float64 rounds in sums as long as those of these networks. The
        losses after a step may differ by more, because some networks increase roundings a million times: by a
        hundred times what a rounding of the images changes.
        """
        loss = sum(self.losses())
        torch.testing.assert_close(loss.detach(), self.check["loss"], rtol=1e-9, atol=0)
        assert self.used == set(self.parameters)
        gradients = torch.autograd.grad(loss, list(self.parameters.values()))
        for name, gradient in zip(self.parameters, gradients):
            recorded = self.check["gradient." + self.file_names[name]]
            # A bias before a batch norm has no gradient but roundings.
            assert (gradient - recorded).norm() <= tolerance * (recorded.norm() + 1e-6), name
        assert self.check["losses"].shape == (STEPS,) and self.check["losses"][0] == self.check["loss"]
        errors = self.errors_of_losses()
        if not (errors <= 0.1 * tolerance).all():
            rounded = GraphRun(self.folder)
            rounded.check["input.images"] *= 1 + 2**-52
            assert (errors <= 1e-9 + 100 * rounded.errors_of_losses()).all(), errors
        return errors.max().item()

    def errors_of_losses(self):
        """Trains by SGD, and returns how far each step's loss is from the recorded one, relatively."""
        losses, parameters = [], list(self.parameters.values())
        self.buffers = {n: t.clone() for n, t in self.at_start.items()}
        for _ in range(STEPS):
            loss = sum(self.losses(compare=False))
            losses.append(loss.item())
            with torch.no_grad():
                for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters)):
                    parameter -= RATE * gradient
        return (torch.tensor(losses, dtype=torch.float64) / self.check["losses"] - 1).abs()
