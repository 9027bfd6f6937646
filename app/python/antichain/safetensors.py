"""Reads and writes safetensors files as {name: numpy array}: https://github.com/huggingface/safetensors.

The format is a length, a header in JSON, and the numbers; so the package of that name is not needed.
"""

import json
import struct

import numpy

TYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4"}
NAMES = {numpy.dtype(kind): name for name, kind in TYPES.items()}


def write(file, tensors):
    """Writes arrays of float64, float32, int64 and int32; the file's order is that of the dict."""
    arrays = {name: numpy.require(array, requirements="C") for name, array in tensors.items()}
    header, at = {}, 0
    for name, array in arrays.items():
        header[name] = {
            "dtype": NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]
        }
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # numbers begin at a multiple of 8
    with open(file, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for array in arrays.values():
            out.write(memoryview(array).cast("B") if array.size else b"")


def begins(file):
    """Returns whether a file begins as one of safetensors does."""
    with open(file, "rb") as data:
        return data.read(9)[8:] == b"{"


def read(file):
    """Returns the file's arrays."""
    with open(file, "rb") as data:
        (length,) = struct.unpack("<Q", data.read(8))
        header = json.loads(data.read(length))
        header.pop("__metadata__", None)
        start, arrays = 8 + length, {}
        for name, t in header.items():
            begin, end = t["data_offsets"]
            data.seek(start + begin)
            arrays[name] = (
                numpy.frombuffer(data.read(end - begin), TYPES[t["dtype"]]).reshape(t["shape"]).copy()
            )
    return arrays
