"""Measures a PyTorch model with PyTorch itself and writes a profile.json, so that Antichain plans for that
runtime.

Every call that the model makes is a node, whether Antichain has such an operator or not. A node is measured
by itself, on the numbers that reach it: its forward, its backward to inputs and parameters, and its backward
to inputs alone. What the second takes longer is the weight half; where one kernel computes both there is
none. What forward keeps is what PyTorch saves for backward: an output that is saved stays with the node that
made it, the rest is its stash.
"""

import collections
import hashlib
import math
import platform
import statistics
import sys
import time

import torch

from antichain.error import AntichainError
from antichain.objects import Profile
from antichain.pytorch.calls import Call, Kind, map_leaves, needed, references, replay, tensors_in
from antichain.pytorch.capture import capture, told
from antichain.pytorch.inputs import example_call, taking_tensors, tensors_by_parameter
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
        first = self.timed(function)[0] if first is None else first
        times = []
        while self.now() + first < end and len(times) < MOST_RUNS:
            times.append(self.timed(function)[0])
        return statistics.median_high(times or [first])


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
        learns = any(isinstance(r, Call) and r.name in self.learns for r in references(call))

        def fresh(value):
            """Returns an input as a leaf of its own, which takes a gradient where the node before does."""
            if not isinstance(value, torch.Tensor) or id(value) in self.given:
                return value
            return value.detach().requires_grad_(learns and value.is_floating_point())

        args, kwargs = map_leaves(fresh, (args, kwargs))
        leaves = tensors_in((args, kwargs))
        learning = [t for t in leaves if t.requires_grad]
        trained = [t for t in learning if isinstance(t, torch.nn.Parameter)]
        inputs = [t for t in learning if not isinstance(t, torch.nn.Parameter)]
        return self.measure(call.name, lambda: call.function(*args, **kwargs), leaves, inputs, trained)

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
            given = outputs, wanted, [torch.ones_like(t) for t in outputs]
            return self.clock.median(
                lambda: torch.autograd.grad(*given, retain_graph=True, allow_unused=True)
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
        times = (forward_s, to_inputs, whole - to_inputs, self.update(trained))
        self.figures[name] = {**dict(zip(TIMED, times)), "stash": sum(stash.values()), "keeps": keeps}
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


def named_tensors(module, args, keywords):
    """Returns the tensors that a module is called with, by the names of the nodes that stand for them."""
    tensors = tensors_in((args, keywords))
    if len(tensors) == 1 and tensors[0].is_floating_point():
        return {"images": tensors[0]}
    names = Names()
    found = tensors_by_parameter(module, args, keywords)
    return {names.unique(readable(f"input.{key}")): tensor for key, tensor in found}


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


def device_of(name):
    with told(f"PyTorch can't compute on the device {name!r}"):
        device = torch.device(name)
        torch.zeros(1, device=device)
    if device.type not in ("cpu", "cuda"):
        raise AntichainError(f'a model is measured on the device "cpu" or "cuda", not on {str(device)!r}')
    return device


class Listing:
    """The nodes of the profile, each an entry with what the meter found of it. Trained parameters that
    several calls use are shared."""

    def __init__(self, meter, tensors, calls):
        self.meter, self.tensors, self.nodes = meter, tensors, []
        self.uses = collections.Counter(name for call in calls for name in {p.name for p in parameters(call)})

    def shared(self, params):
        places = {p.name: i for i, p in reversed([*enumerate(params)])}
        several = [name for name in places if self.uses[name] > 1 and self.tensors[name].requires_grad]
        sizes = {name: _bytes(self.tensors[name]) for name in several}
        return [
            {"weight": name, "param": places[name], "bytes": size, "slot_bytes": size}
            for name, size in sizes.items()
        ]

    def add(self, name, op, role, inputs, value, params=(), flops=0.0, in_place=False, module=""):
        """Returns the number of the node."""
        figures = self.meter.figures.get(name, {})
        weights = [self.tensors[p.name] for p in params]
        trained = [t for t in weights if t.requires_grad]
        entry = {"id": len(self.nodes), "name": name, **({"module": module} if module else {})}
        entry |= {"op": op, "role": role, "inputs": inputs, **({"in_place": True} if in_place else {})}
        entry["needs_gradient"] = role == "compute" and name in self.meter.learns
        entry |= {f"{part}_us": round(figures.get(part, 0) * 1e6, 3) for part in TIMED}
        entry |= {"output_bytes": _bytes(value), "param_bytes": _bytes(weights)}
        entry |= {"optimiser_bytes": _bytes(trained)} if len(trained) < len(weights) else {}
        entry |= {"shared": self.shared(params)} if self.shared(params) else {}
        entry |= {"stash_bytes": figures.get("stash", 0), "keeps_output": role == "input", "flops": flops}
        self.nodes.append(entry)
        return entry["id"]

    def add_call(self, call, value, used):
        params, flops = parameters(call), _flops(call, value, self.tensors)
        where = call.in_place, call.where.module
        return self.add(call.name, call.key, "compute", sorted(used), value, params, flops, *where)


def measure_loss(meter, loss, result, samples):
    """Measures the loss of the model's output: the user's, or the usual one of such an output."""
    if loss is None and result.dim() == 2:
        zeros = torch.zeros(samples, dtype=torch.long, device=result.device)
        loss = lambda x: torch.nn.functional.cross_entropy(x, zeros)
    with told(f"the loss can't be computed of the model's output, {tuple(result.shape)}"):
        function = loss or (lambda x: (x * x).mean())
        meter.measure("loss", lambda: function(result), [result], [result], [])
        if "loss" not in meter.learns:
            raise TypeError("what it returns has no gradient")


def measure_module(module, example_inputs, file, seconds, device, loss, link_bytes_per_s, link_latency_s):
    """Does what antichain.profile_torch says."""
    check_module(module)
    end = time.perf_counter() + checked_number("seconds", seconds)
    rate = checked_number("link_bytes_per_s", link_bytes_per_s)
    latency = checked_number("link_latency_s", link_latency_s)
    device = device_of(device)
    args, keywords = example_call(example_inputs)
    examples = named_tensors(module, args, keywords)
    captured, recorded = capture(taking_tensors(module, args, keywords), examples)
    output = captured.outputs[0]
    if not isinstance(output, Call):
        raise AntichainError("the model returns a tensor that it does not compute")
    calls = needed(captured.calls, [output])
    name_calls(calls, (*examples, "labels", "loss"))

    def there(t):
        if isinstance(t, torch.nn.Parameter):
            return torch.nn.Parameter(t.detach().to(device), t.requires_grad)
        return t.to(device)

    tensors = {name: there(t) for name, t in captured.tensors.items()}
    inputs = {name: t.to(device) for name, t in examples.items()}
    meter = Meter(tensors, Clock(device, end, len(calls) + 1))
    meter.home.update((t.data_ptr(), name) for given in (examples, inputs) for name, t in given.items())
    samples = len(next(iter(examples.values())))
    listing = Listing(meter, tensors, calls)
    given = {**inputs, "labels": torch.zeros(samples, dtype=torch.int32)}
    ids = {name: listing.add(name, "input", "input", [], value) for name, value in given.items()}
    result = None
    for call, value in replay(calls, tensors, inputs, run=meter.run):
        used = [r for r in references(call) if isinstance(r, Call) or r.kind is Kind.input]
        ids[call] = listing.add_call(call, value, {ids[r if isinstance(r, Call) else r.name] for r in used})
        if call is output:
            result = value
    if not isinstance(result, torch.Tensor) or output.name not in meter.learns:
        raise AntichainError(
            "the model's output has no gradient: it is no tensor of floating-point numbers, or nothing "
            "before it is trained"
        )
    measure_loss(meter, loss, result.detach().requires_grad_(), samples)
    listing.add("loss", "loss", "loss", [ids[output], ids["labels"]], torch.zeros(samples, 2))
    kept, nodes = set().union(*(f["keeps"] for f in meter.figures.values())), listing.nodes
    for n in nodes:
        n["keeps_output"] = n["keeps_output"] or n["name"] in kept
    shapes = [(n["name"], n["op"], n["inputs"], n["output_bytes"]) for n in nodes]
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else _processor()
    data = {"format": "antichain profile 1", "model": type(module).__name__}
    data["graph_hash"] = hashlib.sha256(repr(shapes).encode()).hexdigest()[:16]
    data |= {"device": f"{where}, torch {torch.__version__}", "microbatch": samples}
    data |= {"threads": torch.get_num_threads(), "ranks_at_once": 1}
    data |= {"link": {"bytes_per_s": rate, "latency_us": latency * 1e6}, "overhead_us": 0.0}
    data |= {"called_once": called_once(recorded, examples.values()), "nodes": nodes}
    profile = Profile(data)
    if file is not None:
        profile.write(file)
    return profile
