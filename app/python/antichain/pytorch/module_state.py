"""What a module holds beside its numbers that changes how PyTorch trains it. Nothing of it is in graph.json,
so it is refused here, each by the name of the module or parameter."""

import torch

from antichain.error import AntichainError

# Modules of torch.nn that compute one thing in training and another in evaluation.
TWO_MODES = (
    torch.nn.modules.batchnorm._NormBase,
    torch.nn.modules.dropout._DropoutNd,
    torch.nn.MultiheadAttention,
    torch.nn.RNNBase,
    torch.nn.RReLU,
    torch.nn.TransformerEncoder,
    torch.nn.TransformerEncoderLayer,
)


def named(name, of):
    return f"{name or 'the model'} ({type(of).__name__})"


def in_list(names):
    """Returns "a, b, c and 4 more"."""
    names = list(names)
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _backward_hooks(module):
    return any(getattr(module, kind, None) for kind in ("_backward_hooks", "_backward_pre_hooks"))


def _gradient_hooks(parameter):
    """Says whether a parameter has hooks, or the node has that accumulates its gradient. PyTorch shows that
    node's hooks only to who adds one."""
    if any(getattr(parameter, k, None) for k in ("_backward_hooks", "_post_accumulate_grad_hooks")):
        return True
    if not parameter.requires_grad or isinstance(parameter, torch.nn.parameter.UninitializedTensorMixin):
        return False
    node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
    for add in (getattr(node, k, None) for k in ("register_hook", "register_prehook")):
        if add:
            own = add(print)
            hooks = own.hooks_dict_ref()
            own.remove()
            if hooks:
                return True
    return False


def _computed_weights(module):
    """Returns the names of tensors that a module computes anew before each pass: those of weight_norm,
    spectral_norm and pruning, old and new."""
    hooks = [
        h for h in module._forward_pre_hooks.values() if type(h).__module__.startswith("torch.nn.utils.")
    ]
    return [
        *getattr(module, "parametrizations", ()),
        *(getattr(h, "name", getattr(h, "_tensor_name", "weight")) for h in hooks),
        *(n for n, t in vars(module).items() if isinstance(t, torch.Tensor) and t.grad_fn is not None),
    ]


def _of_one_memory(tensors, parameters):
    """Returns lists of the names of tensors whose places in memory overlap. A parameter of several names is
    one tensor."""
    places, known = [], set()
    own = {id(p) for p in parameters}
    for name, t in tensors.items():
        if id(t) in own and id(t) in known:
            continue
        known.add(id(t))
        if isinstance(t, torch.Tensor) and t.layout is torch.strided and t.numel() and t.data_ptr():
            span = 1 + sum((n - 1) * stride for n, stride in zip(t.shape, t.stride()))
            places.append((t.data_ptr(), t.data_ptr() + span * t.element_size(), name))
    groups, end = [], 0
    for begin, last, name in sorted(places, key=lambda place: place[0]):
        if begin >= end:
            groups.append([])
        groups[-1].append(name)
        end = max(end, last)
    return [group for group in groups if len(group) > 1]


def what_is_not_done(module):
    """Returns what of a module's state Antichain would not do, as clauses of a sentence."""
    modules, parameters = module.named_modules(), dict(module.named_parameters())
    modules = {named(name, m): (name, m) for name, m in modules}
    everywhere = vars(torch.nn.modules.module)

    def of_modules(wrong):
        return [said for said, (_, m) in modules.items() if wrong(m)]

    def of_parameters(wrong):
        return [name for name, p in parameters.items() if wrong(p)]

    def trains_alone(m):
        counts = isinstance(m, TWO_MODES) or not type(m).__module__.startswith("torch.nn.")
        return m.training and not module.training and counts

    def has_no_shape(p):
        return isinstance(p, torch.nn.parameter.UninitializedTensorMixin)

    def is_expanded(p):
        return any(extent > 1 and stride == 0 for extent, stride in zip(p.shape, p.stride()))

    clauses = {
        "{} is in training mode while the model is in evaluation mode, but such a model is taken as if all "
        "of it were in training mode (call train() of the model, then eval() of what is to stay in "
        "evaluation mode)": of_modules(trains_alone),
        "{} has momentum=None, an average over all batches (give it a momentum, such as 0.1)": of_modules(
            lambda m: getattr(m, "momentum", 0) is None
        ),
        "{} has a backward hook (remove it)": of_modules(_backward_hooks),
        "backward hooks of all modules are registered, {} (remove them)": [
            name for name in ("_global_backward_hooks", "_global_backward_pre_hooks") if everywhere.get(name)
        ],
        "{} is compiled by torch.compile (give the module itself, its _orig_mod)": of_modules(
            lambda m: hasattr(m, "_orig_mod")
        ),
        "{} is a program of torch.jit (give the module that it was made of)": of_modules(
            lambda m: isinstance(m, torch.jit.ScriptModule)
        ),
        "the gradient of the parameter {} has a hook (remove it)": of_parameters(_gradient_hooks),
        "{} has no shape yet (run the lazy module once before)": of_parameters(has_no_shape),
    }
    if not any(clauses.values()):
        shared = _of_one_memory(module.state_dict(keep_vars=True), parameters.values())
        trained = [any(name in parameters for name in names) for names in shared]
        clauses = {
            "{} is expanded, so that several of its numbers are one in memory (clone it)": of_parameters(
                is_expanded
            ),
            "{} share memory, but each parameter is trained by itself (clone it)": [
                " = ".join(names) for names, of in zip(shared, trained) if of
            ],
            "{} are one buffer of several names, but each module has buffers of its own (clone it)": [
                " = ".join(names) for names, of in zip(shared, trained) if not of
            ],
        }
    return [clause.format(in_list(dict.fromkeys(names))) for clause, names in clauses.items() if names]


def frozen(module, used):
    """Returns the names of those of a network's parameters that PyTorch does not train. Throws AntichainError
    where it trains none."""
    parameters = dict(module.named_parameters())
    names = [name for name in used if not parameters[name].requires_grad]
    if used and len(names) == len(used):
        raise AntichainError("all parameters have requires_grad=False, so there is nothing to train")
    return names
