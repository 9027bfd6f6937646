"""Spectral normalisation (torch.nn.utils.spectral_norm, old and new) as one function, which stands in for
what PyTorch's own code does while a module is captured: the buffers change there without a gradient."""

import torch


def _normalised(x, eps):
    return torch.nn.functional.normalize(x, dim=0, eps=eps)


def spectral_norm(weight, u, v, iterations, eps, training):
    """Returns a weight divided by its largest singular value, as layers/spectral_norm.h says. In training it
    changes u and v."""
    if torch.overrides.has_torch_function((weight, u, v)):  # torch.fx records it
        given = (weight, u, v, iterations, eps, training)
        return torch.overrides.handle_torch_function(spectral_norm, (weight, u, v), *given)
    if type(weight) not in (torch.Tensor, torch.nn.Parameter):  # torch.export does
        return torch.ops.antichain.spectral_norm(weight, u, v, iterations, eps, training)
    matrix = weight.flatten(1)
    if training:
        with torch.no_grad():
            for _ in range(iterations):
                v.copy_(_normalised(torch.mv(matrix.t(), u), eps))
                u.copy_(_normalised(torch.mv(matrix, v), eps))
        u, v = u.clone(), v.clone()
    return weight / torch.dot(u, torch.mv(matrix, v))


if hasattr(torch, "library") and hasattr(torch.library, "custom_op"):

    @torch.library.custom_op("antichain::spectral_norm", mutates_args=())
    def _recorded(
        weight: torch.Tensor, u: torch.Tensor, v: torch.Tensor, iterations: int, eps: float, training: bool
    ) -> torch.Tensor:
        return torch.empty_like(weight)  # it runs on tensors without numbers

    @_recorded.register_fake
    def _(weight, u, v, iterations, eps, training):
        return torch.empty_like(weight)

    _recorded.register_autograd(lambda context, gradient: (gradient, *[None] * 5))


def _of(weight, dim, *given):
    """Does it with the axis `dim` of the weight as the rows of its matrix."""
    axes = [dim, *(axis for axis in range(weight.dim()) if axis != dim)]
    if dim == 0:
        return spectral_norm(weight, *given)
    back = [axes.index(axis) for axis in range(weight.dim())]
    return spectral_norm(weight.permute(axes), *given).permute(back)


def _replace_new(p):
    def forward(weight):
        if weight.dim() < 2:
            raise NotImplementedError("spectral_norm of a vector")
        return _of(weight, p.dim % weight.dim(), p._u, p._v, p.n_power_iterations, p.eps, p.training)

    p.forward = forward


def _replace_old(hook):
    def compute_weight(module, do_power_iteration):
        weight, u, v = (getattr(module, hook.name + end) for end in ("_orig", "_u", "_v"))
        return _of(weight, hook.dim, u, v, hook.n_power_iterations, hook.eps, do_power_iteration)

    hook.compute_weight = compute_weight


def stand_in(module):
    """Makes all spectral normalisations of a module call this function."""
    for m in module.modules():
        if type(m).__name__ == "_SpectralNorm" and type(m).__module__.startswith("torch.nn.utils"):
            _replace_new(m)
        for hook in m._forward_pre_hooks.values():
            if type(hook).__name__ == "SpectralNorm" and type(hook).__module__.startswith("torch.nn.utils"):
                _replace_old(hook)
