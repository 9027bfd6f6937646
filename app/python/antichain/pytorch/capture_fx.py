"""Records what a module computes by torch.fx, as torch 1.13 has it.

The module runs on real tensors, in training mode. Every proxy knows its value, so that shapes are numbers:
what the user's code computes from them (x.size(0), x.shape[2] // 2, loops, conditions) is done while it runs
and leaves no node. The modules of torch.nn are entered, too, so the record has functions and methods only.

Reed, DeVito, He, Ussery & Ansel, "torch.fx: Practical Program Capture and Transformation for Deep Learning in
Python", MLSys 2022.
"""

import contextlib
import operator
import sys

import torch
import torch.fx
from torch.overrides import TorchFunctionMode

from antichain.error import AntichainError
from antichain.pytorch.autograd_functions import NO_GRADIENT, functions_entered
from antichain.pytorch.calls import DECIDES, SAME_FOR_ALL, Kind, Tensor, Where
from antichain.pytorch.calls import is_users, line_here, map_leaves, tensors_in
from antichain.pytorch.normalise import ranges_of

# Methods that return no tensor and say nothing about the numbers in it.
ABOUT_SHAPES = (
    "size dim ndimension numel nelement stride element_size is_contiguous is_floating_point "
    "is_complex get_device type storage_offset"
).split()
# Methods that make a tensor without the numbers of the one that they are called of.
ABOUT_NO_NUMBERS = ("new_", "empty_like", "full_like", "ones_like", "rand", "zeros_like")
# Those that make a tensor of which the numbers are known: the user's code may change parts of it.
MADE = ("new_full", "new_ones", "new_zeros")
TO_NUMBERS = {"__bool__", "__float__", "__index__", "__int__", "allclose", "equal", "item", "numpy", "tolist"}
CHANGE_GRADIENTS = ("backward", "register_hook", "register_post_accumulate_grad_hook", "requires_grad_")


class ValueProxy(torch.fx.Proxy):
    """A proxy that knows the tensor that it stands for, and passes for a tensor in the user's
    isinstance()."""

    __class__ = property(lambda self: torch.Tensor)

    def __init__(self, node, tracer, value):
        torch.fx.Proxy.__init__(self, node, tracer)
        self.value = value

    def __getattr__(self, name):
        if name == "value":
            raise AttributeError(name)
        found = getattr(self.value, name)
        if isinstance(found, torch.Tensor):
            return self.tracer.create_proxy("call_function", getattr, (self, name), {})
        create = self.tracer.create_proxy
        return (lambda *a, **kw: create("call_method", name, (self, *a), kw)) if callable(found) else found

    def __len__(self):
        return len(self.value)

    def __iter__(self):
        return (self[i] for i in range(len(self.value)))

    def _number(self, *_):
        self.tracer.refuse(DECIDES)

    def __abs__(self):
        return self.tracer.create_proxy("call_function", torch.abs, (self,), {})

    __bool__ = __int__ = __float__ = __index__ = _number

    def __setitem__(self, index, value):
        if not ranges_of(self.value.shape, index if isinstance(index, tuple) else (index,)):
            self.tracer.refuse("an assignment to a part of a tensor that is no range", "ranges are known")
        part = self[index]
        part.copy_(value) if isinstance(value, torch.Tensor) else part.fill_(value)


def _in_place(function):
    return lambda self, other: self.tracer.create_proxy("call_function", function, (self, other), {})


for _name in ("iadd", "isub", "imul", "itruediv"):
    setattr(ValueProxy, f"__{_name}__", _in_place(getattr(operator, _name)))


class Tracer(torch.fx.Tracer):
    def __init__(self, module, examples):
        super().__init__()
        self.examples = examples
        self.names = {id(t): name for name, t in [*module.named_parameters(), *module.named_buffers()]}
        self.modules = {id(m): name for name, m in module.named_modules()}
        self.stack = [("", type(module))]
        self.parameters = {}
        self.tensors = {}  # by name, of those that the graph uses

    def refuse(self, what, but=SAME_FOR_ALL):
        raise AntichainError(f"{what} ({self.here()}), but {but}")

    def here(self):
        path, kind = self.stack[-1]
        line = line_here(capture)
        return Where(path, kind.__name__, kind.__module__.startswith("torch.nn"), line)

    def is_leaf_module(self, module, path):
        return False

    def path_of_module(self, module):
        if id(module) not in self.modules:
            self.refuse(f"the module {type(module).__name__} is made while the model runs")
        return self.modules[id(module)]

    def call_module(self, module, forward, args, kwargs):
        self.stack.append((self.path_of_module(module), type(module)))
        try:
            return forward(*args, **kwargs)
        finally:
            self.stack.pop()

    # What a module's attribute is: parameters become proxies, and everything else stays what it is.
    def getattr(self, name, value, cache):
        if isinstance(value, torch.nn.Parameter) and id(value) in self.names:
            return self.parameter(value)
        return value

    def parameter(self, value):
        if id(value) not in self.parameters:
            self.parameters[id(value)] = ValueProxy(self.tensor(self.names[id(value)], value), self, value)
        return self.parameters[id(value)]

    def tensor(self, name, value):
        kind = Kind.constant if name.startswith("constant.") else Kind.buffer
        kind = Kind.parameter if isinstance(value, torch.nn.Parameter) else kind
        self.tensors[name] = value
        node = self.create_node("get_attr", name, (), {})
        node.meta["tensor"] = Tensor(name, kind, tuple(value.shape))
        node.meta["dtype"] = value.dtype
        return node

    def create_arg(self, a):
        if isinstance(a, torch.fx.Proxy):
            return a.node
        if isinstance(a, torch.Tensor):
            if isinstance(a, torch.nn.Parameter) and id(a) not in self.names:
                self.refuse("a parameter is not one of the model's")
            if id(a) not in self.names:
                self.names[id(a)] = f"constant.{len(self.tensors)}"
            return self.tensor(self.names[id(a)], a)
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return tuple(map(self.create_arg, a))
        if isinstance(a, (torch.device, torch.dtype, torch.memory_format, torch.layout)):
            return a
        return super().create_arg(a)

    def create_args_for_root(self, function, is_module, concrete_args=None):
        proxies = []
        for name, example in self.examples.items():
            node = self.create_node("placeholder", name, (), {})
            node.meta["tensor"] = Tensor(name, Kind.input, tuple(example.shape))
            node.meta["dtype"] = example.dtype
            proxies.append(ValueProxy(node, self, example))
        return function, [self.root, *proxies]

    def with_value(self, node, value):
        node.meta["where"] = self.here()
        if isinstance(value, torch.Tensor):
            node.meta["shape"] = tuple(value.shape)
            node.meta["dtype"] = value.dtype
        return ValueProxy(node, self, value)

    def check_gradient(self, name, given, result):
        """Refuses what keeps a gradient from passing through a call, or computes in fewer bits."""
        if not result.is_floating_point():
            return
        if result.dtype in (torch.float16, torch.bfloat16):
            self.refuse(f"'{name}' computes in {result.dtype}", "a module is taken in float32")
        if given and not result.requires_grad and not name.startswith(ABOUT_NO_NUMBERS):
            self.refuse(f"no gradient passes through '{name}'", NO_GRADIENT)

    def create_proxy(self, kind, target, args, kwargs, *_, **__):
        name = target if kind == "call_method" else args[1] if target is getattr else target.__name__
        if name in CHANGE_GRADIENTS:
            self.refuse(f"'{name}' changes how gradients are computed", "this can't be recorded")
        values, named = map_leaves(_value, (args, kwargs))
        if kind == "call_method":
            result = getattr(values[0], target)(*values[1:], **named)
        else:
            result = target(*values, **named)
        if kind == "call_method" and target in MADE:
            return result
        if not _has_tensor(result):
            if target in ABOUT_SHAPES or target is getattr:
                return result
            self.refuse(f"'{getattr(target, '__name__', target)}' makes a number of a tensor")
        trained = any(t.requires_grad for t in tensors_in((values, named)))
        for t in tensors_in(result):
            self.check_gradient(name, trained, t)
        node = self.create_node(kind, target, self.create_arg(tuple(args)), self.create_arg(dict(kwargs)))
        if isinstance(result, torch.Tensor):
            return self.with_value(node, result)
        whole = self.with_value(node, result)

        def part(i):
            return self.create_node("call_function", operator.getitem, (whole.node, i), {})

        values = enumerate(result)
        parts = [self.with_value(part(i), x) if isinstance(x, torch.Tensor) else x for i, x in values]
        return type(result)(parts)  # with the names that it has: values, indices


class NoNumbers(TorchFunctionMode):
    """Refuses numbers that the user's code takes of a buffer, or of a tensor that it makes while it runs."""

    def __init__(self, tracer):
        super().__init__()
        self.tracer = tracer

    def __torch_function__(self, function, types, args=(), kwargs=None):
        caller = sys._getframe(2)  # the first one is PyTorch's own, around this function
        if function.__name__ in TO_NUMBERS and is_users(caller.f_code.co_filename):
            self.tracer.refuse(DECIDES)
        return function(*args, **(kwargs or {}))


def _value(leaf):
    return leaf.value if isinstance(leaf, torch.fx.Proxy) else leaf


def _has_tensor(value):
    values = value if isinstance(value, (tuple, list)) else [value]
    return any(isinstance(v, torch.Tensor) for v in values)


@contextlib.contextmanager
def wrapped_entered():
    """Has the tracer enter functions of which torch.fx.wrap asks otherwise, but for those that have a row."""
    wrapped = torch.fx._symbolic_trace._wrapped_fns_to_patch
    before = [*wrapped]
    wrapped[:] = [(scope, name) for scope, name in before if name == "stochastic_depth"]
    try:
        yield
    finally:
        wrapped[:] = before


def capture(module, examples):
    """Returns a graph, and the tensors that it uses, by name. `examples` are the inputs, by name.

    Each node has in `meta` the Tensor that it is ("tensor"), or where it was made ("where") and the shape of
    its result ("shape"), where that is one tensor; and the type of its numbers ("dtype"). The module's
    buffers change as they do in training.
    """
    tracer = Tracer(module, examples)
    with torch.enable_grad(), functions_entered(tracer.here), NoNumbers(tracer), wrapped_entered():
        graph = tracer.trace(module)
    return graph, tracer.tensors
