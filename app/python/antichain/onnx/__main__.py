"""python3 -m antichain.onnx import FILE.onnx OUT.antichain, and export RUN OUT.onnx."""

import sys

from antichain.error import AntichainError

sys.stdout.reconfigure(errors="backslashreplace")  # names of files may be no text
try:
    try:
        from antichain.onnx.command import main
    except ModuleNotFoundError as problem:
        if problem.name not in ("numpy", "onnx"):
            raise
        raise AntichainError(
            f"ONNX files are read and written by the Python package {problem.name}, which is not installed: "
            f"pip install {problem.name}, or Debian's python3-{problem.name}"
        ) from problem
    main()
except AntichainError as problem:
    print(f"antichain: {problem}", file=sys.stderr)
    sys.exit(problem.code or 3)
