"""A test with an empty folder, which is removed in the end."""

import pathlib
import tempfile
import unittest
import warnings


class InAFolder(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = pathlib.Path(held.name)
