"""ONNX files (github.com/onnx/onnx) on their way to a folder NAME.antichain, and back.

  python3 -m antichain.onnx import FILE.onnx OUT.antichain
  python3 -m antichain.onnx export RUN OUT.onnx

  read        messages.py reads the file; constants.py computes what does not depend on the network's input
  simplify    patterns.py and simplify.py make one operator of what exporters decompose
  translate   importing.py makes nodes by rows.py, the table of ONNX's operators
  export      exporting.py goes the other way; names.py has what both directions call the same

The numbers of constants and weights are numpy's; torch is not needed.
"""
