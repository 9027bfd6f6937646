"""Reads and writes safetensors files as {name: tensor}, as far as antichain exports and reads them."""
import json
import pathlib
import struct

import numpy
import torch

TYPES = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8"}
KINDS = {torch.float32: "F32", torch.float64: "F64", torch.int32: "I32", torch.int64: "I64"}


def read(file):
    data = pathlib.Path(file).read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    tensors = {}
    for name, t in header.items():
        begin, end = (start + o for o in t["data_offsets"])
        tensors[name] = torch.from_numpy(numpy.frombuffer(data[begin:end], TYPES[t["dtype"]]).reshape(t["shape"]).copy())
    return tensors


def write(file, tensors):
    header, parts, at = {}, [], 0
    for name, tensor in tensors.items():
        kind = KINDS[tensor.dtype]
        part = tensor.contiguous().numpy().astype(TYPES[kind]).tobytes()
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [at, at + len(part)]}
        parts.append(part)
        at += len(part)
    text = json.dumps(header).encode()
    pathlib.Path(file).write_bytes(b"".join([struct.pack("<Q", len(text)), text, *parts]))
