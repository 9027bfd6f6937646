#!/usr/bin/env python3
"""Writes tests/golden/state_dicts/MODEL.txt from torchvision: what our ImageNet forms are compared with.

    python3 tests/golden/state_dicts.py          (Debian: python3-torch, python3-torchvision)

A line is a module that owns tensors: its name and its output's C x H x W for an image of the usual size, then
after every semicolon one entry of the state_dict (name, shape, standard deviation and largest magnitude as
drawn with seed 0) or one number (of a norm). Modules come in the order in which they end:

    conv1 64x112x112; weight 64x3x7x7 0.02523 0.104
    bn1 64x112x112; eps 1e-05; momentum 0.1; weight 64 0 1; bias 64 0 0; ...; num_batches_tracked scalar 0 0
"""
import pathlib

import torch
import torchvision

FOLDER = pathlib.Path(__file__).parent / "state_dicts"
MODELS = {  # ours: (theirs, image size)
    "alexnet": ("alexnet", 224),
    "convnext_tiny": ("convnext_tiny", 224),
    "densenet121": ("densenet121", 224),
    "efficientnet_b0": ("efficientnet_b0", 224),
    "inception_v3": ("inception_v3", 299),
    "mobilenet_v2": ("mobilenet_v2", 224),
    "mobilenet_v3_large": ("mobilenet_v3_large", 224),
    "resnet18": ("resnet18", 224),
    "resnet50": ("resnet50", 224),
    "resnet101": ("resnet101", 224),
    "resnext50": ("resnext50_32x4d", 224),
    "resnext101": ("resnext101_32x8d", 224),
    "squeezenet1_0": ("squeezenet1_0", 224),
    "vgg16": ("vgg16", 224),
}


def joined(shape):
    return "x".join(map(str, shape)) or "scalar"


def entry(name, tensor):
    values = tensor.double()
    return f"{name} {joined(tensor.shape)} {values.std(unbiased=False):.4g} {values.abs().max():.4g}"


def output_shapes(model, image):
    """C x H x W of the output of every module that owns tensors, in the order in which they end, in training
    mode, where the auxiliary head runs too. ConvNeXt's blocks permute to N x H x W x C inside."""
    shapes = {}

    def note(name, module, y):
        channels_last = type(module) in (torch.nn.LayerNorm, torch.nn.Linear) and y.dim() == 4
        shapes[name] = (y.permute(0, 3, 1, 2) if channels_last else y).shape[1:]

    for name, module in model.named_modules():
        if module._parameters or module._buffers:
            module.register_forward_hook(lambda m, x, y, name=name: note(name, m, y))
    with torch.no_grad():
        model.train()(torch.zeros(2, 3, image, image))
    return shapes


def lines(theirs, image):
    torch.manual_seed(0)
    model = getattr(torchvision.models, theirs)(weights=None)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    shapes = output_shapes(model, image)
    for name, shape in shapes.items():
        own = {k.rpartition(".")[2]: v for k, v in state.items() if k.rpartition(".")[0] == name}
        module = model.get_submodule(name)
        fields = [f"{name} {joined(shape)}"]
        if isinstance(module, (torch.nn.BatchNorm2d, torch.nn.LayerNorm)):
            fields.append(f"eps {module.eps:g}")
        if isinstance(module, torch.nn.BatchNorm2d):
            fields.append(f"momentum {module.momentum:g}")
        yield "; ".join(fields + [entry(k, v) for k, v in own.items()])


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for ours, (theirs, image) in MODELS.items():
        text = f"# torchvision {torchvision.__version__}, {theirs}, 1000 classes, {image} x {image} pixels\n"
        (FOLDER / f"{ours}.txt").write_text(text + "".join(line + "\n" for line in lines(theirs, image)))
        print(ours)
