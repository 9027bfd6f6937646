"""python3 -m antichain.pytorch weights IN.pt OUT.safetensors."""

import sys

from antichain.error import AntichainError

sys.stdout.reconfigure(errors="backslashreplace")  # names of files may be no text
try:
    try:
        from antichain.pytorch.saved import main
    except ModuleNotFoundError as problem:
        if problem.name not in ("numpy", "torch"):
            raise
        raise AntichainError(
            f"files of torch.save are read by the Python package {problem.name}, which is not installed: "
            f"pip install {problem.name}"
        ) from problem
    main()
except AntichainError as problem:
    print(f"antichain: {problem}", file=sys.stderr)
    sys.exit(problem.code or 3)
