"""Runs a module of tests here: `run.py from_torch_test torch numpy`. It ends with 77 where a package that it
needs is absent. The tests are unittest's, so pytest runs them, too: `PYTHONPATH=app/python
ANTICHAIN=build/antichain pytest tests/python`."""

import importlib.util
import os
import pathlib
import sys
import unittest

package = str(pathlib.Path(__file__).resolve().parents[2] / "app/python")
sys.path.insert(0, package)
# Processes that tests start find it, too.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))

if __name__ == "__main__":  # and not in a process that a test starts
    module, *needed = sys.argv[1:]
    absent = [name for name in needed if importlib.util.find_spec(name) is None]
    if absent:
        print(f"skipped: needs {' and '.join(absent)}")
        sys.exit(77)
    unittest.main(module, argv=[module])
