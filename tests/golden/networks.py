"""This has our models in PyTorch, in both forms, with weights that a test can draw again without Python."""
import math

import numpy
import torch
import torch.nn.functional as functional
import torchvision
from torch import nn
from torchvision.models.resnet import BasicBlock, ResNet

THEIRS = {"resnext50": "resnext50_32x4d", "resnext101": "resnext101_32x8d"}  # where names differ


def build(model, form, aux=False, drops=False):
    """torchvision's network, changed where models/*.h says that the CIFAR form differs. Dropout and
    stochastic depth are off, unless it drops."""
    if model in ("resnet20", "resnet32", "resnet56"):
        net = cifar_resnet((int(model[6:]) - 2) // 6)
    elif model == "vit_tiny":
        net = torchvision.models.VisionTransformer(32, 4, 12, 3, 192, 768, num_classes=10)
    else:
        options = {"aux_logits": aux, "init_weights": False} if model == "inception_v3" else {}
        net = getattr(torchvision.models, THEIRS.get(model, model))(
            weights=None, num_classes=10 if form == "cifar" else 1000, **options)
        if form == "cifar":
            to_cifar(model, net)
    for module in net.modules():
        if isinstance(module, (nn.Dropout, torchvision.ops.StochasticDepth)) and not drops:
            module.p = 0.0
        if isinstance(module, (nn.BatchNorm2d, nn.LayerNorm)):
            module.eps = float(numpy.float32(module.eps))  # ours is a float32
    return net


def cifar_resnet(n):
    """He et al. 2016, section 4.2, with torchvision's shortcuts."""
    net = ResNet(BasicBlock, [n, n, n, n], num_classes=10)
    net.inplanes = 16
    net.conv1, net.bn1, net.maxpool = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.Identity()
    net.layer1 = net._make_layer(BasicBlock, 16, n)
    net.layer2 = net._make_layer(BasicBlock, 32, n, stride=2)
    net.layer3 = net._make_layer(BasicBlock, 64, n, stride=2)
    net.layer4, net.fc = nn.Identity(), nn.Linear(64, 10)
    return net


def to_cifar(model, net):
    if model.startswith("resne"):
        net.conv1, net.maxpool = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.Identity()
    elif model == "densenet121":
        net.features.conv0, net.features.pool0 = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.Identity()
    elif model == "squeezenet1_0":
        net.features[0] = nn.Conv2d(3, 96, 3, 1, 1)
    elif model == "convnext_tiny":
        net.features[0][0] = nn.Conv2d(3, 96, 2, 2)
    elif model.startswith(("efficientnet", "mobilenet")):
        first_halved = {"efficientnet_b0": lambda: net.features[2][0].block, "mobilenet_v2": lambda: net.features[2].conv,
                        "mobilenet_v3_large": lambda: net.features[2].block}[model]()
        for layer in (net.features[0], first_halved[1]):  # in a block, the depthwise convolution is the second
            layer[0].stride = (1, 1)
    elif model == "vgg16":
        net.avgpool = nn.Identity()
        for i in (0, 3, 6):
            net.classifier[i] = nn.Linear(512, 10 if i == 6 else 512)
    elif model == "alexnet":
        net.features[0] = nn.Conv2d(3, 64, 3, 2, 1)
        for i in (2, 5, 12):
            net.features[i] = nn.MaxPool2d(2)
        net.avgpool, net.classifier[1] = nn.Identity(), nn.Linear(256 * 2 * 2, 4096)
    elif model == "inception_v3":
        for layer in (net.Conv2d_1a_3x3, net.Conv2d_2a_3x3, net.Conv2d_4a_3x3):
            layer.conv.stride, layer.conv.padding = (1, 1), (1, 1)
        net.maxpool1, net.maxpool2 = nn.MaxPool2d(3, 2, 1), nn.Identity()
        if net.AuxLogits is not None:
            head = net.AuxLogits

            def forward(x):
                x = functional.adaptive_avg_pool2d(head.conv1(head.conv0(x)), (1, 1))
                return head.fc(torch.flatten(x, 1))

            head.forward = forward


def drawn(name, shape):
    """Numbers in [-1, 1), of 24 bits: SplitMix64 (Steele, Lea & Flood, "Fast Splittable Pseudorandom Number
    Generators", OOPSLA 2014) from the name's FNV-1a hash. tests/models/golden.cpp draws the same."""
    key = 0xCBF29CE484222325
    for byte in name.encode():
        key = (key ^ byte) * 0x100000001B3 % 2**64
    index = numpy.arange(1, math.prod(shape) + 1, dtype=numpy.uint64)
    z = numpy.uint64(key) + index * numpy.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    z ^= z >> numpy.uint64(31)
    return ((z >> numpy.uint64(40)).astype(numpy.float64) * 2**-23 - 1).reshape(shape)


def weights(name, shape):
    """He et al. 2015 for matrices and filters; around 1 for a norm's weight; small for what is added, and for
    the scale of a layer. float32."""
    u = drawn(name, shape)
    if math.prod(shape[1:]) > 1:
        u = u * math.sqrt(6 / math.prod(shape[1:]))
    else:
        u = 1 + 0.25 * u if name.endswith("weight") else 0.1 * u
    return torch.from_numpy(u.astype(numpy.float32))


def load(net):
    for name, parameter in net.named_parameters():
        parameter.data.copy_(weights(name, tuple(parameter.shape)))
    return net


def images(n, side):
    return torch.from_numpy(drawn("images", (n, 3, side, side)).astype(numpy.float32))
