#!/usr/bin/env python3
"""Writes tests/golden/onnx: a small network as PyTorch's exporters write it, and PyTorch's logits.

    python3 tests/golden/onnx_files.py       (Debian: python3-torch writes opsets 11 and 17; torch 2.9 or
                                              later with onnxscript writes opset 21)

In opset 11 LayerNorm, GroupNorm, GELU and Hardswish are decomposed, in later ones only some of them. The
batch norm is folded into its convolution. tests/python/onnx_import_test.py reads the folder.
"""
import pathlib

import torch
from torch import nn
from torch.nn import functional

import tensor_file

FOLDER = pathlib.Path(__file__).parent / "onnx"
SAMPLES, SIDE, CLASSES = 3, 16, 5


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.norm = nn.GroupNorm(2, 8)
        self.squeeze = nn.Linear(8, 4)
        self.excite = nn.Linear(4, 8)
        self.layer_scale = nn.Parameter(torch.rand(8, 1, 1) + 0.5)
        self.branch = nn.Conv2d(4, 8, 1)
        self.norm2 = nn.LayerNorm(8, eps=1e-6)
        self.mix = nn.Linear(8, 12)
        self.back = nn.Linear(12, 8, bias=False)
        self.tokens = nn.Linear(16, 16)
        self.norm3 = nn.LayerNorm(8)
        self.fc = nn.Linear(8, CLASSES)
        for parameter in self.parameters():
            nn.init.normal_(parameter, 0.1, 0.3)

    def forward(self, images):
        x = functional.hardswish(self.bn1(self.conv1(images)))
        x = functional.silu(self.norm(x))
        gate = functional.relu(self.squeeze(x.mean((2, 3))))
        gate = functional.hardsigmoid(self.excite(gate)).view(-1, 8, 1, 1)
        x = x * gate * self.layer_scale
        a, b = x.chunk(2, 1)
        x = torch.cat([functional.relu6(a), functional.max_pool2d(b, 3, 1, 1)], 1)
        x = x.view(-1, 2, 4, 8, 8).transpose(1, 2).reshape(-1, 8, 8, 8) + self.branch(a)
        x = functional.avg_pool2d(x, 2)
        last = self.norm2(x.permute(0, 2, 3, 1))
        last = self.back(functional.gelu(self.mix(last)))
        x = (x + last.permute(0, 3, 1, 2)).flatten(2)
        x = x + functional.gelu(self.tokens(x), approximate="tanh")
        return self.fc(self.norm3(x.transpose(1, 2)).mean(1))


def main():
    torch.manual_seed(1)
    net = Small().eval()
    images = torch.randn(SAMPLES, 3, SIDE, SIDE)
    FOLDER.mkdir(exist_ok=True)
    if hasattr(torch.onnx, "ONNXProgram"):
        net.load_state_dict(tensor_file.read(FOLDER / "state.safetensors"))
        samples = torch.export.Dim("samples", min=1)
        program = torch.onnx.export(net, (images,), opset_version=21, dynamo=True,
                                    dynamic_shapes=({0: samples},), input_names=["images"])
        file = program.model_proto
        for node in file.graph.node:
            del node.metadata_props[:]
        del file.graph.value_info[:]
        (FOLDER / "opset21.onnx").write_bytes(file.SerializeToString())
        return
    state = {name: t for name, t in net.state_dict().items() if t.dtype == torch.float32}
    state["bn1.num_batches_tracked"] = net.bn1.num_batches_tracked
    tensor_file.write(FOLDER / "state.safetensors", state)
    with torch.no_grad():
        tensor_file.write(FOLDER / "logits.safetensors", {"images": images, "logits": net(images)})
    for opset in (11, 17):
        torch.onnx.export(net, images, FOLDER / f"opset{opset}.onnx", opset_version=opset,
                          input_names=["images"],
                          dynamic_axes={"images": {0: "samples"}} if opset == 11 else None)


if __name__ == "__main__":
    main()
