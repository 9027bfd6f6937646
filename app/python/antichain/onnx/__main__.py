"""python3 -m antichain.onnx import FILE.onnx OUT.antichain, and export RUN OUT.onnx."""

from antichain.command import start

start(
    "antichain.onnx.command",
    ("numpy", "onnx"),
    "ONNX files are read and written",
    ", or Debian's python3-{}",
)
