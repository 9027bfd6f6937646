"""Runs the examples of examples/pytorch. Each runs from an empty folder and leaves what it says. `plan.py`
needs torchvision, and is run with a smaller network, so that it takes seconds on a CPU."""

import json
import os
import pathlib
import subprocess
import sys

from in_a_folder import InAFolder

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Examples(InAFolder):
    def run_example(self, text):
        (self.folder / "example.py").write_text(text)
        # The ranks are threads, each of which computes on one core.
        where = {"cwd": self.folder, "env": {**os.environ, "OMP_NUM_THREADS": "1"}, "timeout": 300}
        words = [sys.executable, "-B", "example.py"]
        done = subprocess.run(words, **where, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def example(self, name):
        return (ROOT / "examples/pytorch" / name).read_text()

    def test_a_network_of_ones_own_is_trained_on_2_ranks(self):
        said = self.run_example(self.example("train.py"))
        self.assertIn("ranks 0-1", said)
        self.assertIn("step 20/20", said)
        self.assertIn("All keys matched", said)

    def test_a_plan_for_8_gpus(self):
        try:
            import torchvision  # noqa: F401
        except ImportError as absent:
            self.skipTest(f"needs {absent.name}")
        text = self.example("plan.py")
        self.assertLessEqual(len([line for line in text.splitlines()[1:] if line]), 10)
        small = text.replace("resnet50()", "resnet18()").replace("8, 3, 224, 224", "2, 3, 64, 64")
        self.assertNotEqual(small, text)
        said = self.run_example(small)
        self.assertIn("8 stages", said)
        self.assertIn("8 ranks", said)
        self.assertEqual(len(json.loads((self.folder / "plan.json").read_text())["stages"]), 8)
