"""python3 -m antichain.onnx import FILE.onnx OUT.antichain, and export RUN OUT.onnx."""

import sys

from antichain.error import AntichainError

sys.stdout.reconfigure(errors="backslashreplace")  # names of files may be no text
try:
    from antichain.onnx.command import main

    main()
except AntichainError as problem:
    print(f"antichain: {problem}", file=sys.stderr)
    sys.exit(problem.code or 3)
