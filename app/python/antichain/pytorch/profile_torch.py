"""Measures a PyTorch model with PyTorch itself and writes a profile.json, so that Antichain plans for that
runtime.

Every call that the model makes is a node, whether Antichain has such an operator or not. A node is measured
by itself, on the numbers that reach it: its forward, its backward to inputs and parameters, and its backward
to inputs alone. What the second takes longer is the weight half; where one kernel computes both there is
none. What forward keeps is what PyTorch saves for backward: an output that is saved stays with the node that
made it, the rest is its stash.
"""

import copy
import hashlib
import inspect
import math
import platform
import sys
import time

import torch

from antichain.error import AntichainError
from antichain.objects import Profile
from antichain.pytorch.calls import Call, Kind, map_leaves, needed, references, replay, tensors_in
from antichain.pytorch.capture import capture, said
from antichain.pytorch.names import name_calls, parameters, readable
from antichain.pytorch.refusal import check_module, checked_number
from antichain.translation import Names

MOST_RUNS = 100
TIMED = ("forward", "backward_input", "backward_weight", "update")


def _bytes(value):
    return sum(t.numel() * t.element_size() for t in tensors_in(value))


def _flops(call, value, tensors):
    """Returns the FLOPs of a forward: of products by a weight what they take, of everything else one a
    number."""
    weights = [tensors[p.name] for p in parameters(call)]
    out = sum(v.numel() for v in tensors_in(value))
    if call.key in ("conv2d", "linear", "conv1d", "conv3d") and weights:
        return 2.0 * out * math.prod(weights[0].shape[1:])
    return float(out)


def _processor():
    try:
        with open("/proc/cpuinfo") as facts:
            return next(line.split(":", 1)[1].strip() for line in facts if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


class Clock:
    """Times functions of a number of nodes on one device until `end`, a time of now()."""

    def __init__(self, device, end, nodes):
        self.device, self.end, self.nodes, self.done, self.seconds = device, end, nodes, 0, 0.0

    def now(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()

    def begin_node(self):
        """Gives the next node its share of the time that is left, and shows how far the measuring is."""
        # Three of its functions take time: forward, and backward twice.
        self.seconds = max(0.0, self.end - self.now()) / (3 * (self.nodes - self.done))
        self.done += 1
        if sys.stderr.isatty():
            ended = self.done == self.nodes
            sys.stderr.write("\r\033[K" if ended else f"\rmeasuring node {self.done} of {self.nodes}")
            sys.stderr.flush()

    def timed(self, function):
        begin = self.now()
        value = function()
        return self.now() - begin, value

    def median(self, function, first=None):
        """Returns the median of some runs, in seconds. The first, which may have been timed before, counts
        only where there is no time for another."""
        end = self.now() + self.seconds
        if first is None:
            first, _ = self.timed(function)
        times = []
        while self.now() + first < end and len(times) < MOST_RUNS:
            times.append(self.timed(function)[0])
        return sorted(times)[len(times) // 2] if times else first


class Meter:
    """Measures calls while they are replayed, and keeps each one's figures."""

    def __init__(self, tensors, clock):
        self.clock = clock
        self.home = {}  # the node that a storage is the output of
        self.given = {id(t) for t in tensors.values()}
        self.of_parameters = {t.data_ptr() for t in tensors.values()}
        self.figures = {}
        self.learns = set()  # names of the nodes that need a gradient

    def run(self, call, args, kwargs):
        learning = [r for r in references(call) if isinstance(r, Call) and r.name in self.learns]

        def fresh(value):
            """Returns an input as a leaf of its own, which takes a gradient where the node before does."""
            if isinstance(value, torch.Tensor) and id(value) not in self.given:
                value = value.detach()
                return value.requires_grad_() if learning and value.is_floating_point() else value
            return value

        args, kwargs = map_leaves(fresh, (args, kwargs))
        leaves = tensors_in((args, kwargs))
        return self.measure(
            call.name,
            lambda: call.function(*args, **kwargs),
            leaves,
            [t for t in leaves if t.requires_grad and not isinstance(t, torch.nn.Parameter)],
            [t for t in leaves if isinstance(t, torch.nn.Parameter) and t.requires_grad],
        )

    def measure(self, name, forward, used, inputs, trained):
        saved = []
        self.clock.begin_node()
        with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
            first, value = self.clock.timed(forward)
        outputs = [t for t in tensors_in(value) if t.requires_grad]  # some calls return what they were given
        if outputs:
            self.learns.add(name)
        forward_s = self.clock.median(forward, first)

        def backward(wanted):
            if not outputs or not wanted:
                return 0.0
            ones = [torch.ones_like(t) for t in outputs]
            return self.clock.median(
                lambda: torch.autograd.grad(outputs, wanted, ones, retain_graph=True, allow_unused=True)
            )

        whole = backward(inputs + trained)
        to_inputs = min(whole, backward(inputs)) if trained else whole
        self.home.update((t.data_ptr(), name) for t in tensors_in(value))
        # Addresses of tensors that are gone may be in use again.
        there = {t.data_ptr() for t in [*tensors_in(value), *used]}
        keeps, stash = set(), {}
        for t in saved:
            if t.data_ptr() in there and t.data_ptr() in self.home:
                keeps.add(self.home[t.data_ptr()])
            elif t.data_ptr() not in self.of_parameters:
                stash[t.data_ptr()] = _bytes(t)
        self.figures[name] = {
            "forward": forward_s,
            "backward_input": to_inputs,
            "backward_weight": whole - to_inputs,
            "update": self.update(trained),
            "stash": sum(stash.values()),
            "keeps": keeps,
        }
        return map_leaves(lambda leaf: leaf.detach() if isinstance(leaf, torch.Tensor) else leaf, value)

    def update(self, trained):
        """Returns what stochastic gradient descent with momentum takes, in seconds."""
        if not trained:
            return 0.0
        state = [(t.detach().clone(), torch.zeros_like(t), torch.zeros_like(t)) for t in trained]

        def step():
            for weight, momentum, gradient in state:
                weight.add_(momentum.mul_(0.9).add_(gradient), alpha=-1e-3)

        return self.clock.median(step)


def example_call(example_inputs):
    """Returns what a module is called with: a tuple, and a dictionary of keywords."""
    if isinstance(example_inputs, dict):
        args, keywords = (), example_inputs
    else:
        args, keywords = example_inputs, {}
    args = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    tensors = tensors_in((args, keywords))
    if not tensors or not tensors[0].dim() or not len(tensors[0]) or any(t.is_complex() for t in tensors):
        raise AntichainError(
            "example_inputs is a tensor, a tuple of what the module takes, or a dictionary of that by "
            "keywords; its first tensor begins with the axis of the samples, one at least, and none is "
            "complex; but it has "
            f"{[(tuple(t.shape), t.dtype) for t in tensors] or type(example_inputs).__name__}"
        )

    def on_cpu(leaf):
        if not isinstance(leaf, torch.Tensor):
            return leaf
        leaf = leaf.detach().cpu()
        return leaf.float() if leaf.is_floating_point() else leaf.clone()

    return map_leaves(on_cpu, args), {key: map_leaves(on_cpu, value) for key, value in keywords.items()}


def named_tensors(module, args, keywords):
    """Returns the tensors that a module is called with, by the names of the nodes that stand for them."""
    tensors = tensors_in((args, keywords))
    if len(tensors) == 1 and tensors[0].is_floating_point():
        return {"images": tensors[0]}
    takes = [*inspect.signature(module.forward).parameters]
    takes += [f"{i}" for i in range(len(takes), len(args))]
    names = Names()
    return {
        names.unique(readable(f"input.{key}")): tensor
        for key, value in [*zip(takes, args), *keywords.items()]
        for tensor in tensors_in(value)
    }


def taking_tensors(module, args, keywords):
    """Returns the module as one whose forward takes the tensors in `args` and `keywords` alone."""
    if not keywords and all(isinstance(a, torch.Tensor) for a in args):
        return module
    kind = type(module)

    def forward(self, *tensors):
        left = iter(tensors)
        given, named = map_leaves(
            lambda leaf: next(left) if isinstance(leaf, torch.Tensor) else leaf, (args, keywords)
        )
        return kind.forward(self, *given, **named)

    module = copy.copy(module)
    module.__class__ = type(kind.__name__, (kind,), {"forward": forward, "__module__": kind.__module__})
    return module


def called_once(module, tensors):
    """Returns the names of the modules in a module whose forward runs once while it computes."""
    calls = dict.fromkeys((name for name, _ in module.named_modules() if name), 0)

    def counted(name, forward):
        def run(*args, **kwargs):
            calls[name] += 1
            return forward(*args, **kwargs)

        return run

    for name, part in module.named_modules():
        if name:
            part.forward = counted(name, part.forward)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        module(*(t.clone() for t in tensors))
    return [name for name, count in calls.items() if count == 1]


def measure_module(module, example_inputs, file, seconds, device, loss, link_bytes_per_s, link_latency_s):
    """Does what antichain.profile_torch says."""
    check_module(module)
    end = time.perf_counter() + checked_number("seconds", seconds)
    link_bytes_per_s = checked_number("link_bytes_per_s", link_bytes_per_s)
    link_latency_s = checked_number("link_latency_s", link_latency_s)
    try:
        device = torch.device(device)
        torch.zeros(1, device=device)
    except Exception as problem:
        raise AntichainError(f"PyTorch can't compute on the device {device!r}: {said(problem)}") from problem
    if device.type not in ("cpu", "cuda"):
        raise AntichainError(f'a model is measured on the device "cpu" or "cuda", not on {str(device)!r}')
    args, keywords = example_call(example_inputs)
    examples = named_tensors(module, args, keywords)
    captured, recorded = capture(taking_tensors(module, args, keywords), examples)
    output = captured.outputs[0]
    if not isinstance(output, Call):
        raise AntichainError("the model returns a tensor that it does not compute")
    calls = needed(captured.calls, [output])
    # A parameter may have several uses: each runtime has a way to tie copies of it.
    name_calls(calls, (*examples, "labels", "loss"), problems=[])
    tensors = {
        name: (
            torch.nn.Parameter(t.detach().to(device), t.requires_grad)
            if isinstance(t, torch.nn.Parameter)
            else t.to(device)
        )
        for name, t in captured.tensors.items()
    }
    meter = Meter(tensors, Clock(device, end, len(calls) + 1))
    inputs = {name: t.to(device) for name, t in examples.items()}
    meter.home.update((t.data_ptr(), name) for given in (examples, inputs) for name, t in given.items())
    samples = len(next(iter(examples.values())))

    def node(name, op, role, inputs, value, params=(), flops=0.0, in_place=False, module=""):
        figures = meter.figures.get(name, {})
        weights = [tensors[p.name] for p in params]
        trained = [t for t in weights if t.requires_grad]
        return {
            "id": len(nodes),
            "name": name,
            **({"module": module} if module else {}),
            "op": op,
            "role": role,
            "inputs": inputs,
            **({"in_place": True} if in_place else {}),
            "needs_gradient": role == "compute" and name in meter.learns,
            **{f"{part}_us": round(figures.get(part, 0) * 1e6, 3) for part in TIMED},
            "output_bytes": _bytes(value),
            "param_bytes": _bytes(weights),
            **({"optimiser_bytes": _bytes(trained)} if len(trained) < len(weights) else {}),
            "stash_bytes": figures.get("stash", 0),
            "keeps_output": role == "input",
            "flops": flops,
        }

    nodes = []
    for name, value in {**inputs, "labels": torch.zeros(samples, dtype=torch.int32)}.items():
        nodes.append(node(name, "input", "input", [], value))
    input_ids = {n["name"]: n["id"] for n in nodes}
    ids = {}
    result = None
    for call, value in replay(calls, tensors, inputs, run=meter.run):
        used = {
            ids[id(r)] if isinstance(r, Call) else input_ids[r.name]
            for r in references(call)
            if isinstance(r, Call) or r.kind is Kind.input
        }
        ids[id(call)] = len(nodes)
        nodes.append(
            node(
                call.name,
                call.key,
                "compute",
                sorted(used),
                value,
                parameters(call),
                _flops(call, value, tensors),
                call.in_place,
                call.where.module,
            )
        )
        if call is output:
            result = value
    if not isinstance(result, torch.Tensor) or output.name not in meter.learns:
        raise AntichainError(
            "the model's output has no gradient: it is no tensor of floating-point numbers, or nothing "
            "before it is trained"
        )
    result = result.detach().requires_grad_()
    if loss is None:
        zeros = torch.zeros(samples, dtype=torch.long, device=device)
        loss = (
            (lambda x: torch.nn.functional.cross_entropy(x, zeros))
            if result.dim() == 2
            else (lambda x: (x * x).mean())
        )
    try:
        meter.measure("loss", lambda: loss(result), [result], [result], [])
        if "loss" not in meter.learns:
            raise TypeError("what it returns has no gradient")
    except Exception as problem:
        raise AntichainError(
            f"the loss can't be computed of the model's output, {tuple(result.shape)}: {said(problem)}"
        ) from problem
    nodes.append(
        node("loss", "loss", "loss", [ids[id(output)], input_ids["labels"]], torch.zeros(samples, 2))
    )
    kept = set().union(*(f["keeps"] for f in meter.figures.values()))
    for n in nodes:
        n["keeps_output"] = n["keeps_output"] or n["name"] in kept
    shapes = [(n["name"], n["op"], n["inputs"], n["output_bytes"]) for n in nodes]
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else _processor()
    profile = Profile(
        {
            "format": "antichain profile 1",
            "model": type(module).__name__,
            "graph_hash": hashlib.sha256(repr(shapes).encode()).hexdigest()[:16],
            "device": f"{where}, torch {torch.__version__}",
            "microbatch": samples,
            "threads": torch.get_num_threads(),
            "ranks_at_once": 1,
            "link": {"bytes_per_s": link_bytes_per_s, "latency_us": link_latency_s * 1e6},
            "overhead_us": 0.0,
            "called_once": called_once(recorded, examples.values()),
            "nodes": nodes,
        }
    )
    if file is not None:
        profile.write(file)
    return profile
