"""Computes the numbers of check.safetensors: what PyTorch makes of one batch when it trains the user's own
module with the user's own loss, in float64 and in training mode, with dropout and stochastic depth left out,
and how far its float32 is from that. docs/bring-your-model.md lists them.

What was read of the module is trained beside it. Where the two part, something of the module was not
understood, and it is refused.
"""

import dataclasses
import math

import numpy
import torch
from torch.overrides import TorchFunctionMode

from antichain.error import AntichainError
from antichain.pytorch.calls import map_leaves, replay
from antichain.pytorch.capture import copied, told, users_line
from antichain.pytorch.normalise import flat

RATE, STEPS = 1e-3, 5  # of stochastic gradient descent, without momentum and decay
PASSES = 3  # in float32; only some of them show what a number next to the kink of a ReLU does to gradients
# The module and what was read of it call the same kernels but for those in place, so they differ by
# roundings, which some networks increase a million times.
SAME = {torch.float64: 1e-6, torch.float32: 0.1}
# What is larger counts only if it is as many times what one rounding of the inputs makes.
ROUNDINGS = 100


class AsRead(TorchFunctionMode):
    """Leaves out of the user's own code what is left out of what is read of it: dropout, where draws of
    numbers are their expectations (as calls.without_randomness has it); and that float32 is asked for,
    where the code computes in float64."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name, kwargs = getattr(function, "__name__", ""), kwargs or {}
        x = args[0] if args else None
        if isinstance(x, torch.Tensor) and x.dtype is torch.float64 and x.requires_grad:
            if name == "float":
                return x
            wide = lambda leaf: torch.float64 if leaf is torch.float32 else leaf
            args, kwargs = map_leaves(wide, (args, kwargs))
        if name.removesuffix("_") in ("dropout", "dropout1d", "dropout2d", "dropout3d", "feature_dropout"):
            return args[0] if args else kwargs["input"]
        if name == "scaled_dot_product_attention":
            names = ["query", "key", "value", "attn_mask", "dropout_p", "is_causal"]
            kwargs = {**dict(zip(names, args)), **kwargs, "dropout_p": 0.0}
            return function(kwargs.pop("query"), kwargs.pop("key"), kwargs.pop("value"), **kwargs)
        if name == "bernoulli_":
            return args[0].fill_((*args[1:], *kwargs.values())[0])
        if name == "bernoulli" and len(args) + len(kwargs) > 1:
            return torch.full_like(args[0], (*args[1:], *kwargs.values())[0])
        return function(*args, **kwargs)


def distance(a, b):
    """Returns the norm of the difference; equal infinities, as masks have them, differ by nothing."""
    return torch.where(a == b, 0, a - b).norm().item()


@dataclasses.dataclass
class Trained:
    losses: numpy.ndarray  # before each step
    gradients: dict  # of the first step
    after: dict  # parameters and buffers after the last one

    def arrays(self, used):
        """Yields names in the file, and arrays of float64, of the parameters and buffers that are used."""
        yield "losses", self.losses
        for kind, tensors in (("gradient", self.gradients), ("after", self.after)):
            yield from ((f"{kind}.{n}", tensors[n].double().numpy()) for n in used if n in tensors)


@dataclasses.dataclass
class Training:
    """The training of a module on one batch, and that of what was read of it."""

    module: torch.nn.Module
    captured: object  # all that was read of it
    # The losses and their targets by name: own(dtype) and read(dtype) return the user's own and those that
    # were read as functions of outputs and targets.
    objective: object
    examples: dict  # the inputs, by their names

    def run(self, forward, loss_of, state, steps, dtype, scale={}):
        """Trains tensors for some steps. `forward` returns the outputs for inputs, and `loss_of` the loss of
        outputs and targets. `scale` has factors for inputs, by their names."""
        examples = {n: x.double() * scale[n] if n in scale else x for n, x in self.examples.items()}
        examples, targets = (
            {n: x.to(dtype) if x.is_floating_point() else x for n, x in of.items()}
            for of in (examples, self.objective.targets)
        )
        is_trained = lambda t: isinstance(t, torch.nn.Parameter) and t.requires_grad
        trained = {name: tensor for name, tensor in state.items() if is_trained(tensor)}
        optimiser = torch.optim.SGD(trained.values(), RATE)
        reported, first = [], None
        for _ in range(steps):
            optimiser.zero_grad()
            outputs = forward(examples)
            loss = loss_of(outputs, targets)
            reported.append(loss.item())
            loss.backward()
            gradients = {n: torch.zeros_like(p) if p.grad is None else p.grad for n, p in trained.items()}
            first = first or {name: gradient.clone() for name, gradient in gradients.items()}
            optimiser.step()
        after = {name: t.detach().clone() for name, t in state.items()}
        return Trained(numpy.array(reported), first, after)

    def copy(self, dtype):
        """Returns a copy of the module, and its parameters and buffers by their names."""
        module = copied(self.module).to(dtype)
        return module, dict([*module.named_parameters(), *module.named_buffers()])

    def own(self, steps, dtype, scale={}):
        """Trains a copy of the user's own module."""
        module, state = self.copy(dtype)
        with told("the model can't be trained", users_line), AsRead():
            forward = lambda x: flat(module(*x.values()))
            trained = self.run(forward, self.objective.own(dtype), state, steps, dtype, scale)
            # The user's code may have put others in place of the buffers.
            buffers = {name: t.detach().clone() for name, t in module.named_buffers()}
            return dataclasses.replace(trained, after={**trained.after, **buffers})

    def read(self, steps, dtype, look=lambda call, value: None):
        """Trains what was read of the module. `look` sees each call and its result in the first step."""
        _, state = self.copy(dtype)
        given = self.captured.tensors.items()
        constants = {name: t.to(dtype) if t.is_floating_point() else t for name, t in given}
        tensors, outputs, seen = {**constants, **state}, self.captured.outputs, []
        norms = [c for c in self.captured.calls if c.key == "batch_norm" and c.kwargs.get("training")]
        means = [c.kwargs.get("running_mean") for c in norms]
        counts = [m.name.replace("running_mean", "num_batches_tracked") for m in means if m is not None]

        def forward(inputs):
            found = {}
            for call, value in replay(self.captured.calls, tensors, inputs, random=False):
                if any(call is output for output in outputs):
                    found[id(call)] = value
                if not seen:
                    look(call, value.detach() if isinstance(value, torch.Tensor) else value)
            seen.append(True)
            for name in counts:
                if name in state:
                    state[name] += 1
            return [found[id(o)] for o in outputs]

        return self.run(forward, self.objective.read(dtype), state, steps, dtype)

    def compare(self, steps, look=lambda call, value: None):
        """Returns the floating-point type that the user's code computes in, float64 where it can, and what
        the module's own training gives. Throws AntichainError where what was read of it gives something
        else."""
        try:
            dtype, own = torch.float64, self.own(steps, torch.float64)
        except AntichainError:
            dtype, own = torch.float32, self.own(steps, torch.float32)
        read = self.read(steps, dtype, look)
        before = dict([*self.module.named_parameters(), *self.module.named_buffers()])
        whole = sum(g.norm().item() ** 2 for g in own.gradients.values()) ** 0.5
        again = None

        def check(what, difference_to, length):
            """Compares with what a change of the inputs by a rounding makes, where the two differ."""
            nonlocal again
            difference = difference_to(read)
            if difference <= SAME[dtype] * length:
                return
            scale = self.rounding(1, torch.finfo(dtype).eps)
            again = again or (self.own(steps, dtype, scale), self.own(steps, dtype))
            rounded, repeated = map(difference_to, again)
            if not difference <= ROUNDINGS * rounded or not repeated <= SAME[dtype] * length:
                raise AntichainError(
                    f"training the model changes {what} otherwise than training what was read of the model: "
                    "its forward or the loss may change tensors by itself, draw random numbers, use hooks or "
                    "inference_mode, run batch norm again in an activation checkpoint, compute in fewer "
                    "bits, or have gradients of its own"
                )

        for name, gradient in own.gradients.items():
            difference_of = lambda other: (gradient - other.gradients[name]).norm().item()
            check(f"the parameter {name}", difference_of, gradient.norm().item() + whole / 100)
        for name, tensor in own.after.items():
            what = f"the {'parameter' if name in own.gradients else 'buffer'} {name}"
            if name not in before or before[name].shape != tensor.shape:
                check(what, lambda other: math.inf, 0)
            start, end = before[name].detach().cpu().to(tensor.dtype).double(), tensor.double()
            difference_of = lambda other: distance(end, other.after[name].double())
            moved = distance(end, start)
            allowed = moved + RATE * whole / 100 + 1e-3 * start.norm().item() if moved else 0
            check(what, difference_of, allowed)
        for i, loss in enumerate(own.losses):
            check(f"the loss of step {i + 1}", lambda other: abs(loss - other.losses[i]), abs(loss))
        return dtype, own

    def rounding(self, seed, size=2**-23):
        """Returns factors for the inputs that change them by half a rounding at most, so that everything
        behind them is rounded otherwise. Whole numbers have none."""
        draws = torch.Generator().manual_seed(seed)
        factors = lambda x: torch.rand(x.shape, generator=draws, dtype=torch.float64)
        inputs = {name: x for name, x in self.examples.items() if x.is_floating_point()}
        return {name: 1 + size * (factors(x) - 0.5) for name, x in inputs.items()}


def record(training, nodes, used):
    """Returns arrays by their names in the file. `nodes` are those of the graph, `used` the names of the
    parameters and buffers that they have."""
    shown = {id(node.call): node for node in nodes if node.call}
    results = {
        f"input.{name}": x.double().numpy() if x.is_floating_point() else x.int().numpy()
        for name, x in {**training.examples, **training.objective.targets}.items()
    }

    def keep(call, value):
        node = shown.get(id(call))
        if node:
            back = [node.order.index(axis) for axis in range(len(node.order))]
            results[f"node.{node.name}"] = value.permute(back).contiguous().double().numpy()

    _, own = training.compare(STEPS, keep)
    right = dict(own.arrays(used))
    results["loss"] = right["losses"][0]
    results.update(right)
    for i in range(PASSES):
        rounded = dict(training.own(STEPS, torch.float32, training.rounding(i) if i else {}).arrays(used))
        for name, array in right.items():
            error = (abs if name == "losses" else numpy.linalg.norm)(rounded[name] - array)
            name = f"float32_error.{name}"
            results[name] = numpy.maximum(results.get(name, 0), error)
    return results
