"""Runs a module of tests here: `run.py from_torch_test torch numpy`. Ends with 77 where a package is absent that it
needs. The tests are unittest's, which pytest runs, too."""
import importlib.util
import sys
import unittest

module, *needed = sys.argv[1:]
absent = [name for name in needed if importlib.util.find_spec(name) is None]
if absent:
    print(f"skipped: needs {' and '.join(absent)}")
    sys.exit(77)
unittest.main(module, argv=[module])
