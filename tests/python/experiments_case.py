"""What tests of experiments share: profiles of networks of a few nodes, and how an experiment is run. The
program is $ANTICHAIN."""

import contextlib
import gc
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest
import unittest.mock

from antichain.experiments import __main__ as main
from antichain.experiments import start
from in_a_folder import InAFolder

ROOT = pathlib.Path(__file__).resolve().parents[2]
PUBLISHED = os.environ.pop("ANTICHAIN_PIPEDREAM_PROFILES", None)  # the experiments would take it

# A chain of six nodes after an input; forward and backward of node i take i ms and 2 i ms, activations have
# 1 MiB.
CHAIN = "".join(
    f"node{i} -- {'Input0' if i == 1 else 'Linear(in_features=8, out_features=8, bias=True)'} -- "
    f"forward_compute_time={i if i > 1 else 0}.0, backward_compute_time={2 * i if i > 1 else 0}.0, "
    f"activation_size=1048576.0, parameter_size={4194304 if i > 1 else 0}.0\n"
    for i in range(1, 8)
) + "".join(f"\tnode{i} -- node{i + 1}\n" for i in range(1, 7))

SIMULATED = (
    "speedup --profiles profiles --models one,two --ranks 1,2,3 --methods "
    "antichain,cudasize,handsplit,antichain+replicas,data-parallel --microbatches 6 --out study"
)
SWEPT = SIMULATED.replace("speedup", "sweep")
REHEARSED = (
    "speedup --profiles profiles --models one,two --ranks 2,3 --methods antichain,cudasize --microbatches 4 "
    "--mode rehearse --steps 1 --time-scale 0.3 --launcher threads --out study"
)


ask_always, libraries = start.Program.ask, {}


def ask(program, *words):
    """Asks for libraries only once, because the program builds all its networks, too, for an answer."""
    if words != ("info", "--json", "-"):
        return ask_always(program, *words)
    if program.path not in libraries:
        libraries[program.path] = ask_always(program, *words)
    return libraries[program.path]


class Case(InAFolder):
    def setUp(self):
        super().setUp()
        (self.folder / "profiles").mkdir()
        for name in ("one", "two"):
            (self.folder / f"profiles/{name}.txt").write_text(CHAIN)

    def start(self, words, python=sys.executable, **environment):
        words = words if isinstance(words, list) else words.split()
        return subprocess.Popen(
            [python, "-m", "antichain.experiments", *words], cwd=self.folder,
            env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )

    def run_it(self, words, code=0, **environment):
        """Returns both streams of an experiment, which ends with this code."""
        process = self.start(words, **environment)
        out, err = process.communicate()
        self.assertEqual(process.returncode, code, out + err)
        return out, err

    def refused(self, words, code, sentence, **environment):
        """As run_it, but within this process, which starts at once."""
        words = words if isinstance(words, list) else words.split()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        handlers = [(number, signal.getsignal(number)) for number in start.SIGNALS]
        with (
            unittest.mock.patch.object(sys, "argv", ["experiments", *words]),
            unittest.mock.patch.dict(os.environ, environment),
            unittest.mock.patch.object(start.Program, "ask", ask),
            contextlib.redirect_stderr(io.StringIO()) as err, self.assertRaises(SystemExit) as ended,
        ):
            main.main()
        for number, handler in handlers:
            signal.signal(number, handler)
        ended.exception.__context__ = None  # which has the folder's lock
        gc.collect()
        self.assertIn(sentence, err.getvalue())
        self.assertEqual((ended.exception.code, len(err.getvalue().splitlines())), (code, 1), err.getvalue())

    def json(self, name):
        return json.loads((self.folder / name).read_text())

    def text(self, name):
        return (self.folder / name).read_text()

    def cells(self):
        return len(list(self.folder.glob("study/cells/*.json")))
