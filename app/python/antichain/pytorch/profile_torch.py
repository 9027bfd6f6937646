"""Measures a PyTorch model with PyTorch itself and writes a profile.json, so that Antichain plans for that
runtime.

Every call that the model makes is a node, whether Antichain has such an operator or not. A node is measured
by itself, on the numbers that reach it: its forward, its backward to inputs and parameters, and its backward
to inputs alone. What the second takes longer is the weight half; where one kernel computes both there is
none. What forward keeps is what PyTorch saves for backward: an output that is saved stays with the node that
made it, the rest is its stash.
"""

import hashlib
import math
import platform
import sys
import time

import torch

from antichain.error import AntichainError
from antichain.objects import Profile
from antichain.pytorch.calls import Call, Kind, map_leaves, needed, references, replay
from antichain.pytorch.capture import capture, example_images
from antichain.pytorch.names import name_calls, parameters

RESERVED = ("images", "labels", "loss")
MOST_RUNS = 100


def _bytes(value):
    if isinstance(value, torch.Tensor):
        return value.numel() * value.element_size()
    return sum(map(_bytes, value)) if isinstance(value, (tuple, list)) else 0


def _flops(call, value, tensors):
    """Returns the FLOPs of a forward: of products by a weight what they take, of everything else one a
    number."""
    weights = [tensors[p.name] for p in parameters(call)]
    out = sum(v.numel() for v in _tensors(value))
    if call.key in ("conv2d", "linear", "conv1d", "conv3d") and weights:
        return 2.0 * out * math.prod(weights[0].shape[1:])
    return float(out)


def _tensors(value):
    found = []
    map_leaves(lambda leaf: found.append(leaf) if isinstance(leaf, torch.Tensor) else None, value)
    return found


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
        leaves = _tensors((args, kwargs))
        return self.measure(
            call.name,
            lambda: call.function(*args, **kwargs),
            leaves,
            [t for t in leaves if t.requires_grad and not isinstance(t, torch.nn.Parameter)],
            [t for t in leaves if isinstance(t, torch.nn.Parameter)],
        )

    def measure(self, name, forward, used, inputs, trained):
        saved = []
        self.clock.begin_node()
        with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
            first, value = self.clock.timed(forward)
        outputs = [t for t in _tensors(value) if t.grad_fn is not None]
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
        self.home.update((t.data_ptr(), name) for t in _tensors(value))
        # Addresses of tensors that are gone may be in use again.
        there = {t.data_ptr() for t in [*_tensors(value), *used]}
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


def measure_module(module, example_inputs, file, seconds, device, loss, link_bytes_per_s, link_latency_s):
    """Does what antichain.profile_torch says."""
    end = time.perf_counter() + seconds
    images = example_images(example_inputs)
    captured, _ = capture(module, {"images": images})
    output = captured.outputs[0]
    if not isinstance(output, Call):
        raise AntichainError("the model returns a tensor that it does not compute")
    calls = needed(captured.calls, [output])
    name_calls(calls, RESERVED)
    device = torch.device(device)
    tensors = {
        name: torch.nn.Parameter(t.detach().to(device)) if isinstance(t, torch.nn.Parameter) else t.to(device)
        for name, t in captured.tensors.items()
    }
    meter = Meter(tensors, Clock(device, end, len(calls) + 1))
    meter.home[images.data_ptr()] = "images"
    images = images.to(device)
    meter.home[images.data_ptr()] = "images"

    def node(name, op, role, inputs, value, params=(), flops=0.0, in_place=False):
        figures = meter.figures.get(name, {})
        return {
            "id": len(nodes),
            "name": name,
            "op": op,
            "role": role,
            "inputs": inputs,
            **({"in_place": True} if in_place else {}),
            "needs_gradient": role == "compute" and name in meter.learns,
            "forward_us": round(figures.get("forward", 0) * 1e6, 3),
            "backward_input_us": round(figures.get("backward_input", 0) * 1e6, 3),
            "backward_weight_us": round(figures.get("backward_weight", 0) * 1e6, 3),
            "update_us": round(figures.get("update", 0) * 1e6, 3),
            "output_bytes": _bytes(value),
            "param_bytes": sum(_bytes(tensors[p.name]) for p in params),
            "stash_bytes": figures.get("stash", 0),
            "keeps_output": role == "input",
            "flops": flops,
        }

    labels = torch.zeros(len(images), dtype=torch.int32)
    ids, nodes = {}, []
    nodes += [node("images", "input", "input", [], images)]
    nodes += [node("labels", "input", "input", [], labels)]
    result = None
    for call, value in replay(calls, tensors, {"images": images}, run=meter.run):
        used = {
            ids[id(r)] if isinstance(r, Call) else 0
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
            )
        )
        if call is output:
            result = value
    result = result.detach().requires_grad_()
    if loss is None:
        zeros = torch.zeros(len(images), dtype=torch.long, device=device)
        loss = (
            (lambda x: torch.nn.functional.cross_entropy(x, zeros))
            if result.dim() == 2
            else (lambda x: (x * x).mean())
        )
    meter.measure("loss", lambda: loss(result), [result], [result], [])
    nodes.append(node("loss", "loss", "loss", [ids[id(output)], 1], torch.zeros(len(images), 2)))
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
            "microbatch": len(images),
            "threads": torch.get_num_threads(),
            "ranks_at_once": 1,
            "link": {"bytes_per_s": link_bytes_per_s, "latency_us": link_latency_s * 1e6},
            "overhead_us": 0.0,
            "nodes": nodes,
        }
    )
    if file is not None:
        profile.write(file)
    return profile
