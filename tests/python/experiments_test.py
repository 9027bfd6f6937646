"""These tests run experiments as a user does, on networks of a few nodes. The program is $ANTICHAIN; figures
need matplotlib, and pictures of networks Graphviz."""

import argparse
import contextlib
import gc
import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
import xml.dom.minidom

from antichain import AntichainError
from antichain.experiments import __main__ as main
from antichain.experiments import cells, document, folder, published, start, study, table1
from antichain.experiments.report import starved_cells
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
FULL = {
    "format": "antichain cell 1", "mode": "measured", "model": "m", "method": "antichain+replicas",
    "ranks": 8, "microbatch": 16, "microbatches": 32, "plan_hash": "0123456789abcdef", "stages": "3+5x1",
    "planning_s": 0.1 + 0.2, "one_device_s": 1.5, "slowest_s": 0.25, "imbalance": 1.01, "time_scale": 2.5,
    "boundary_bytes": 123456789012, "memory_bytes": 5,
    "predicted": {"step_s": 1 / 3, "bubble_share": -0.25, "busy_s": [0.1, 0.2, 0.3]},
    "rehearsed": {"step_s": 2 / 3, "bubble_share": 0.5, "busy_s": []},
    "measured": {"step_s": 0.7, "steps": 9, "data": "CIFAR-10", "loss": [], "starved_share": 0.1},
}


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


class Experiments(Case):
    def test_table1(self):
        out, _ = self.run_it("table1 --profiles profiles --models one,two --devices 2,3 --out t1")
        self.assertTrue(out.endswith("The publication has no row for these models and devices.\n"), out)
        rows = self.json("t1/table1.json")["rows"]
        self.assertEqual(len(rows), 4)
        # Forward and backward of the nodes take 6, 9, … 21 ms; the best three stages are 6+9+12, 15+18, 21.
        self.assertAlmostEqual(rows[1]["antichain"]["slowest_stage_s"], 0.033)
        self.assertGreater(rows[1]["cudasize"]["slowest_stage_s"], 0.033)
        self.assertNotIn("handsplit", rows[1])  # nobody has cut it by hand
        self.assertIn("| two | 3 |", self.text("t1/report.md"))
        self.assertIn("<td>two</td><td>3</td>", self.text("t1/report.html"))

    def test_a_study_takes_a_network_from_a_file(self):
        shutil.copytree(ROOT / "tests/golden/small.antichain", self.folder / "small.antichain")
        words = (
            "speedup --graph small.antichain --methods antichain --ranks 2 --microbatch 2 --microbatches 2 "
            "--mode measure --dataset synthetic --train-steps 2 --launcher threads --out study"
        )
        out, _ = self.run_it(words)
        self.assertIn("[1/1] small on 2 by antichain", out)
        self.assertNotIn("alexnet", out)
        graph = self.json("small.antichain/graph.json")
        next(node for node in graph["nodes"] if node["name"] == "drop")["options"]["p"] = 0.25
        (self.folder / "small.antichain/graph.json").write_text(json.dumps(graph))
        self.refused(words, 2, "holds results of other settings: network was")

    def test_a_simulated_study_has_a_report(self):
        out, _ = self.run_it(SIMULATED)
        cell = self.json("study/cells/one-antichain-3-simulate.json")
        self.assertEqual(cell["mode"], "simulated")
        self.assertEqual(len(cell["predicted"]["busy_s"]), 3)
        self.assertEqual(self.json("study/cells/one-data-parallel-3-simulate.json")["stages"], "1x3")
        self.assertIn("refusal", self.json("study/cells/one-handsplit-3-simulate.json"))
        report = self.text("study/report.md")
        for part in ("All times here are simulated", "## Speedup on 3 ranks", "## two", "revision"):
            self.assertIn(part, report)
        self.assertIn("two by handsplit on 3: ", report)
        self.assertNotIn("publication", report)  # it has nothing for 1, 2 or 3 devices
        self.assertIn("| any | 1 |", report)  # one rank does the same by every method
        self.assertNotIn("| antichain | 1 |", report)
        self.assertIn("speedup", self.json("study/experiment.json")["command"])
        self.assertIn("3.4 on 4 and 3.76 on 8", out.splitlines()[-1])
        self.assertLess(len(out.splitlines()), 25, out)
        # The pictures that it shows are there.
        pictures = re.findall(r"\]\((figures/[^)]*)\)", report)
        self.assertEqual(len(pictures), 2 + 2 * (4 if shutil.which("dot") else 3), report)
        for picture in pictures:
            xml.dom.minidom.parse(str(self.folder / "study" / picture))
        lines = self.text("study/figures/speedup-one.svg")
        for label in ("speedup over one rank", "ranks", "antichain+replicas", "data-parallel", "simulated"):
            self.assertIn(label, lines)
        self.assertRegex(self.text("study/figures/timeline-one.svg"), r"idle \d+ %")

    def test_the_comparison_with_the_publication_is_printed_last(self):
        words = "speedup --profiles profiles --models one --ranks 4 --methods antichain,uniform --out study"
        out, _ = self.run_it(words)
        last = [line.split() for line in out.splitlines()[-5:]]
        self.assertEqual(last[2], ["the", "publication,", "on", "GPUs", "3.40"])
        self.assertEqual([line[0] for line in last[3:]], ["antichain", "uniform"])
        self.assertIn("| the publication, on GPUs | 3.40 |", self.text("study/report.md"))

    def test_a_schedule_may_have_several_stages_a_rank(self):
        words = (
            "sweep --profiles profiles --models one --ranks 1,2 --methods antichain,uniform --microbatches 6 "
        )
        self.run_it(words + "--schedule zb-v --out v")
        self.assertEqual(self.json("v/cells/one-antichain-2-simulate.json")["stages"], "4")
        self.assertEqual(self.json("v/cells/one-uniform-1-simulate.json")["stages"], "2")
        self.refused(words + "--schedule zb-v --chunks 3 --out w", 2, "zb-v has 2 stages a rank")

    def test_a_planned_order_is_rehearsed_as_it_was_found(self):
        words = (
            "sweep --profiles profiles --models one --ranks 2 --methods antichain --microbatches 4 --out"
            " planned "
        )
        self.run_it(
            words
            + "--schedule auto --in-flight 3 --mode rehearse --steps 1 --time-scale 1 --launcher threads"
        )
        self.assertIn("microbatches 4", self.text("planned/plans/one-antichain-2-rehearse.schedule"))
        self.assertIn("rehearsed", self.json("planned/cells/one-antichain-2-rehearse.json"))

    def test_finished_cells_are_kept(self):
        self.run_it(SWEPT)
        kept = self.folder / "study/cells/one-antichain-3-simulate.json"
        gone = self.folder / "study/cells/two-cudasize-2-simulate.json"
        marked = kept.read_text().replace('"imbalance": ', '"imbalance": 7')  # so that it is known again
        kept.write_text(marked)
        gone.unlink()
        out, _ = self.run_it(SWEPT)
        self.assertEqual(kept.read_text(), marked)
        self.assertTrue(gone.exists())
        self.assertIn("two: 1 cell simulated", out)
        self.assertNotIn("one: ", out)
        self.refused(SWEPT + " --objective compute", 2, 'objective was "makespan"')
        self.refused(
            "table1 --profiles profiles --models one --out study", 2, "not of an experiment called table1"
        )
        self.run_it(SWEPT + " --mode rehearse --launcher threads --dry-run")  # no rank has started so far
        # What is not given is as it was begun.
        self.run_it(SWEPT.replace("--microbatches 6 ", ""))
        kept.write_text(marked[:40])
        self.refused(SWEPT, 3, "one-antichain-3-simulate.json")  # a damaged cell is no result

    def test_a_folder_that_the_program_itself_filled_goes_on(self):
        self.run_it(SIMULATED.replace("one,two", "one"))
        record = self.json("study/experiment.json")
        settings = {name: value for name, value in record["settings"].items() if value is not None}
        settings |= {"launcher": "", "link_bytes_per_s": -1.0, "link_latency_s": -1.0, "time_scale": 0.0}
        settings |= {"memory_bytes": 0, "train_steps": 0, "data_dir": ""}
        del record["asked"]
        before = self.text("study/report.md")
        (self.folder / "study/experiment.json").write_text(json.dumps(record | {"settings": settings}))
        self.run_it("report --out study")
        after = self.text("study/report.md")
        self.assertEqual(before.split("## Made with")[0], after.split("## Made with")[0])
        self.run_it(SWEPT.replace("one,two", "one"))
        self.assertEqual(self.json("study/experiment.json")["settings"]["launcher"], "threads")

    def test_settings_are_compared_by_value(self):
        for one, other in (("12GB", 1.2e10), ("12GB/s", "12e9"), ("64GiB", 2**36), ("20us", 2e-5), (0, "0")):
            self.assertTrue(folder.same(one, other), (one, other))
        for one, other in (("12GB", "12GiB"), ("one", "two"), (None, 0), ("1.2.3", "1.2.4")):
            self.assertFalse(folder.same(one, other), (one, other))

    def test_without_plotters_the_report_has_tables_and_says_so(self):
        (self.folder / "matplotlib").mkdir()
        (self.folder / "matplotlib/__init__.py").write_text("raise ImportError")
        out, _ = self.run_it(SIMULATED.replace("one,two", "one"), PATH=str(self.folder))
        self.assertIn("No plots: matplotlib is not installed (on Debian: python3-matplotlib).\n", out)
        report = self.text("study/report.md")
        self.assertIn("No graphs of models: Graphviz is not installed", report)
        self.assertNotIn("![", report)
        (self.folder / "matplotlib/__init__.py").write_text("__version_info__ = 3, 5, 1")
        out, _ = self.run_it("report --out study", PATH=str(self.folder))
        self.assertIn("No plots: this matplotlib is older than 3.6.\n", out)

    def test_an_interrupted_sweep_goes_on(self):
        least = 0
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
            process, waited = self.start(REHEARSED), 0
            while self.cells() <= least and waited < 120:
                time.sleep(0.05)
                waited += 0.05
            process.send_signal(number)
            _, err = process.communicate()
            if number == signal.SIGKILL:
                self.assertEqual(process.returncode, -signal.SIGKILL)
            else:
                self.assertEqual(process.returncode, 85, err)
                self.assertIn("the same command goes on", err)
            self.assertTrue(least < self.cells() < 8, "nothing was interrupted")
            least = self.cells()
        self.run_it(REHEARSED)
        self.assertEqual(self.cells(), 8)
        self.assertIn("All times here are rehearsed", self.text("study/report.md"))
        self.assertEqual(self.json("study/cells/two-cudasize-3-rehearse.json")["mode"], "rehearsed")

    def test_a_killed_rank_costs_one_cell(self):
        words = REHEARSED.replace("antichain,cudasize", "antichain")
        _, err = self.run_it(words, 4, ANTICHAIN_FAULT="exit:rank=2:step=1")  # of 3 ranks only
        self.assertIn("2 cells failed", err)
        self.assertEqual(self.cells(), 2)
        self.assertIn("Failed: one-antichain-3-rehearse", self.text("study/report.md"))
        _, err = self.run_it("report --out study", 4)
        self.assertIn("one-antichain-3-rehearse is not finished", err)
        self.run_it(words.replace("speedup", "sweep"))
        self.assertEqual(self.cells(), 4)

    @unittest.skipUnless(shutil.which("mpirun"), "needs mpirun")
    def test_a_measured_study_trains(self):
        """Real training: measured beside predicted, and the same losses wherever it is cut."""
        words = (
            "speedup --mode measure --models resnet20 --ranks 1,2 --methods antichain,uniform --microbatch 4 "
        )
        words += "--microbatches 2 --train-steps 3 --dataset synthetic --out study"
        words = [*words.split(), "--launcher", "mpirun --oversubscribe --bind-to none -n {}"]
        environment = {
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "CLICOLOR_FORCE": "1",
        }
        self.run_it(words, **environment)
        header = "| predicted step, ms | rehearsed step, ms | measured step, ms | difference, % |"
        self.assertIn(header, self.text("study/report.md"))
        self.assertNotIn("\x1b[1m", self.text("study/logs/resnet20-antichain-1-measure.log"))
        alone = self.json("study/cells/resnet20-antichain-1-measure.json")
        self.assertEqual(len(alone["measured"]["loss"]), 3)
        for name in ("antichain-2", "uniform-2", "uniform-1"):
            cell = self.json(f"study/cells/resnet20-{name}-measure.json")
            self.assertEqual(cell["measured"]["loss"], alone["measured"]["loss"], name)
        self.assertGreaterEqual(alone["rehearsed"]["step_s"], alone["predicted"]["step_s"] - 1e-6)
        timeline = self.text("study/figures/timeline-resnet20.svg")
        self.assertIn("on 2 ranks by antichain, measured", timeline)
        self.assertIn("backward", timeline)

    @unittest.skipUnless(
        PUBLISHED, "set ANTICHAIN_PIPEDREAM_PROFILES to a folder with resnet101.txt and so on"
    )
    def test_straight_pipelines_of_the_published_profiles(self):
        words = (
            "sweep --models resnet101,densenet121,vgg16,alexnet --ranks 4,8 --methods antichain --out study "
        )
        words += "--microbatches 32 --link-bytes-per-s 0 --link-latency-s 0 --profiles"
        self.run_it([*words.split(), PUBLISHED])
        least = {
            "resnet101": (3.6, 6.4), "densenet121": (3.6, 6.4), "vgg16": (2.9, 4.0), "alexnet": (2.8, 2.9),
        }
        for model, (on4, on8) in least.items():
            for ranks, speedup in ((4, on4), (8, on8)):
                cell = self.json(f"study/cells/{model}-antichain-{ranks}-simulate.json")
                self.assertGreaterEqual(cell["one_device_s"] / cell["predicted"]["step_s"], speedup, model)

    def test_mistakes_are_said_before_anything_runs(self):
        for words, code, sentence in (
            ("speedup --rnaks 1", 2, "did you mean --ranks?"),
            ("speedup --models one,one", 2, "--models takes names"),
            ("speedup --models ../x", 2, "--models takes names"),
            ("speedup --models=", 2, "--models takes names"),
            ("speedup --ranks 4,x", 2, "--ranks takes numbers from 1 to 1024"),
            ("speedup --methods antichian", 2, "did you mean 'antichain'?"),
            ("speedup --mode simulated", 2, "simulate"),
            ("sweep --models resnet21", 2, "did you mean 'resnet20'?"),
            ("sweep --models resnet20 --mode measure --precision bf61", 2, "did you mean 'bf16'?"),
            ("sweep --models resnet20 --mode measure --dataset cifar1", 2, "cifar1"),
            ("sweep --models resnet20 --mode measure --profiles profiles", 2, "leave out --profiles"),
            ("sweep --models one --profiles profiles --mode rehearse --payload some", 2, "payload"),
            ("sweep --models one --profiles profiles --schedule 1f2b", 2, "did you mean '1f1b'?"),
            ("sweep --models one --profiles profiles --microbatches 0", 2, "--microbatches"),
            ("sweep --models one --profiles profiles --launcher mpiexecute", 2, "no program here"),
            ("sweep --models one --profiles profiles --launcher=", 2, "--launcher has no words"),
            ("sweep --models one --profiles profiles --in-flight 2", 2, "--in-flight limits"),
            ("sweep --models one --profiles profiles --steps 0", 2, "--steps takes a whole number"),
            ("sweep --models one --profiles profiles --watchdog 3", 2, "--watchdog does nothing"),
            ("sweep --models one --profiles profiles --mode rehearse --watchdog x", 2, "takes a time"),
            ("sweep --models one --profiles profiles --microbatch 4", 2, "does nothing with the profiles"),
            ("sweep --models resnet20 --microbatch 1,2", 2, "--microbatch takes a number"),
            ("sweep --models resnet20 --train-steps 0", 2, "--train-steps takes a number"),
            ("sweep --models resnet20 --train-steps 5 --epochs 1", 2, "leave out one of the two"),
            ("sweep --models resnet20 --dataset cifar1", 2, "cifar1"),
            ("sweep --models resnet20 --program /bin/echo", 127, "/bin/echo is not the program antichain"),
            ("sweep --models one --profiles profiles --program nowhere", 127, "nowhere is no program"),
            ("sweep --models three --profiles profiles", 3, "profiles has no profile of three"),
            ("report --out nowhere", 3, "holds no study"),
        ):
            with self.subTest(words):
                self.refused(words + ("" if words.startswith("report") else " --dry-run"), code, sentence)
                self.assertFalse((self.folder / "antichain-speedup").exists())
        self.refused(["sweep", "--launcher", "env -n 2", "--dry-run"], 2, "how many ranks to start")
        out, _ = self.run_it("sweep --profiles elsewhere --dry-run")  # which only nodes may see
        self.assertIn("nothing is wrong with the options", out)
        self.refused("sweep --dry-run", 2, "starts its ranks itself", OMPI_COMM_WORLD_SIZE="2")
        (self.folder / "profiles/three.txt").write_text("node1 -- what")
        self.refused("sweep --models three --profiles profiles --out study", 3, "three.txt")
        (self.folder / "profiles/three.txt").write_text(re.sub(r"_time=\d+", "_time=0", CHAIN))
        self.refused("sweep --models three --profiles profiles --out study", 3, "nothing takes time")
        self.assertEqual(self.cells(), 0)

    def test_a_program_without_mpi_is_refused(self):
        program = self.folder / "alone"
        program.write_text("""#!/bin/sh\necho '{"libraries": ["oneDNN", "no MPI"]}'\n""")
        program.chmod(0o755)
        refused = f"sweep --program {program} --mode rehearse --dry-run"
        self.refused(refused, 2, "is built without MPI, so mpirun can't start")
        self.run_it(f"sweep --program {program} --models one --profiles profiles --dry-run")  # starts no rank

    def test_a_report_of_several_jobs_says_where_their_cells_are_from(self):
        words = "sweep --profiles profiles --ranks 2 --methods antichain --microbatches 4 --out study/parts/"
        for name in ("one", "two"):
            self.run_it(f"{words}{name} --models {name}")
        record = self.json("study/parts/two/experiment.json")
        (self.folder / "study/parts/two/experiment.json").write_text(json.dumps(record | {"host": "node7"}))
        self.run_it("report --out study")
        self.assertEqual(self.cells(), 2)
        self.assertEqual(self.json("study/experiment.json")["asked"]["models"], ["one", "two"])
        self.assertIn("; node7 with", self.text("study/report.md"))
        record["settings"]["microbatches"] = 5
        (self.folder / "study/parts/two/experiment.json").write_text(json.dumps(record))
        self.refused("report --out study", 2, "are of other settings")
        (self.folder / "study/parts/two/experiment.json").write_text("{")
        self.refused("report --out study", 3, "two/experiment.json is no record of an experiment")

    def test_a_fault_of_the_system_is_a_sentence(self):
        model = "x" * 250
        shutil.copy(self.folder / "profiles/one.txt", self.folder / f"profiles/{model}.txt")
        words = f"sweep --profiles profiles --models {model} --ranks 1 --methods antichain --out study"
        self.refused(words, 3, "File name too long")

    def test_names_are_no_formulas(self):
        shutil.copy(self.folder / "profiles/one.txt", self.folder / "profiles/$x_$.txt")
        self.run_it("speedup --profiles profiles --models $x_$ --ranks 1,2 --methods antichain --out study")
        self.assertIn(">$x_$, simulated<", self.text("study/figures/speedup-$x_$.svg"))

    def test_numpy_is_not_needed(self):
        code = "import sys; sys.modules['numpy'] = None; import antichain.experiments.__main__"
        subprocess.run([sys.executable, "-c", code], check=True)


class Cells(Case):
    def read(self, text):
        file = self.folder / "cell.json"
        file.write_text(text)
        return cells.read(file)

    def test_a_damaged_file_is_named(self):
        text = json.dumps(FULL)
        self.assertEqual(self.read(text), FULL)
        without = json.dumps({name: value for name, value in FULL.items() if name != "measured"})
        zero = text.replace('"step_s": 0.7', '"step_s": 0')
        guessed = text.replace('"measured", ', '"guessed", ')
        for damaged in (text[: len(text) // 2], "{}", "[]", guessed, without, zero):
            with self.subTest(damaged), self.assertRaisesRegex(AntichainError, "cell.json is no cell"):
                self.read(damaged)

    def test_measured_speedups_are_over_a_measured_rank(self):
        def measured(method, ranks, step_s):
            return {
                **FULL, "method": method, "ranks": ranks, "measured": {**FULL["measured"], "step_s": step_s},
            }

        one, two, other = measured("antichain", 1, 6), measured("antichain", 2, 4), measured("block", 2, 3)
        found = [one, two, other]
        self.assertEqual([cells.speedup(found, cell) for cell in found], [1, 1.5, 2])
        self.assertEqual(cells.speedup([two], two), 1.5 / 4)  # else over the predicted one
        rehearsed = {name: value for name, value in FULL.items() if name != "measured"}
        self.assertEqual(cells.speedup([one, rehearsed], rehearsed), 1.5 / (2 / 3))  # never mixed

    def test_one_without_its_core_is_doubtful(self):
        self.assertEqual(starved_cells([FULL, FULL]), "")
        starved = {**FULL, "measured": {**FULL["measured"], "starved_share": 0.5}}
        self.assertIn("In 1 of 2 cells", starved_cells([FULL, starved]))
        older = {**FULL, "measured": {"step_s": 1}}
        self.assertFalse(cells.starved(older))

    def test_a_folder_is_used_by_one_at_a_time(self):
        first = folder.ResultsFolder(self.folder / "out", "speedup")
        with self.assertRaisesRegex(AntichainError, "in use by another run, process"):
            folder.ResultsFolder(self.folder / "out", "speedup")
        first._file.close()
        (self.folder / "out/lock").write_text("thesis")
        with self.assertRaisesRegex(AntichainError, "would be overwritten"):
            folder.ResultsFolder(self.folder / "out", "speedup")

    def test_profiles_come_in_three_forms(self):
        (self.folder / "c").mkdir()
        for name in ("a.txt", "b.json", "c/graph.txt"):
            (self.folder / name).write_text("x")
            self.assertEqual(study.profile_in(self.folder, name[0]), self.folder / name)
        with self.assertRaisesRegex(AntichainError, "no profile of d: .*d/graph.txt"):
            study.profile_in(self.folder, "d")


class Texts(unittest.TestCase):
    def test_a_report_has_two_forms(self):
        report = document.Document("A < B")
        report.heading("Second")
        report.paragraph("**bold** and `a<b`")
        report.table(["model", "x"], [[document.literal("a|*b*<i>"), "**1**"], ["c", "2"]])
        report.picture("figures/x.svg", 'the "picture"')
        self.assertEqual(
            report.markdown(), "# A < B\n\n## Second\n\n**bold** and `a<b`\n\n| model | x |\n| --- | ---: |\n"
            "| a\\|\\*b\\*\\<i\\> | **1** |\n| c | 2 |\n\n" + '![the "picture"](figures/x.svg)\n\n',
        )
        for part in (
            "<title>A &lt; B</title>", "<h2>Second</h2>", "<b>bold</b> and <code>a&lt;b</code>",
            "<th>model</th><th>x</th>", "<td>a|*b*&lt;i&gt;</td><td><b>1</b></td>",
            '<img src="figures/x.svg" alt="the &quot;picture&quot;"',
        ):
            self.assertIn(part, report.html())

    def test_tables_fit_a_terminal(self):
        header = ["model", "ranks", *(f"method{i}" for i in range(12))]
        text = document.text_table(header, [["vgg16", "4", *"123456789abc"]], keys=2)
        self.assertTrue(all(len(line) <= 80 for line in text.splitlines()), text)
        self.assertEqual(text.count("vgg16"), 2)

    def test_the_published_table_is_whole(self):
        rows = published.table1()
        self.assertEqual(set(rows), {(model, n) for model in cells.PAPER_MODELS for n in (4, 8)})
        row = {"handsplit_min": ">60", "cudasize_s": 5.89, "hashrate_s": 9.24, "own_method_s": 3.69}
        self.assertEqual(rows["resnet101", 8], row)

    def test_table1_has_the_publications_rows_beside_ours(self):
        ours = {"planning_s": 1e-4, "slowest_stage_s": 0.25, "proved_optimal": True}
        row = {"model": "vgg16", "devices": 8, "antichain": ours, "cudasize": ours, "times_as_fast": 300.0}
        row["published"] = published.table1()["vgg16", 8]
        text = table1.report([row], [], "Profiles of nowhere.").text()
        for part in ("0.03", "300", ">60", "7.84", "9.34", "Profiles of nowhere."):
            self.assertIn(part, text)
        self.assertTrue(all(len(line) <= 80 for line in text.splitlines()), text)

    def test_last_words_are_ours_before_mpiruns(self):
        rule = "-" * 74 + "\n"
        aborted = f"{rule}MPI_ABORT was invoked on rank 0\nwith errorcode 3.\n\nNOTE: it kills.\n{rule}"
        slots = "There are not enough slots to satisfy the 4\nslots that were requested"
        root = "mpirun has detected an attempt to run as root.\n\nIt is *strongly* discouraged.\n"
        for text, words in (
            ("Plan\n\nantichain: p.json is no plan: plan again\n" + aborted, "p.json is no plan: plan again"),
            (f"Plan\n{rule}{slots}:\n\n  antichain\n\nRequest fewer.\n{rule}", slots.replace("\n", " ")),
            (rule + root + rule, "set OMPI_ALLOW_RUN_AS_ROOT=1"), ("dot\nline 3: what?\n", "line 3: what?"),
        ):
            with tempfile.NamedTemporaryFile("w") as log:
                log.write(text)
                log.flush()
                self.assertIn(words, start.last_words(log.name))

    def test_lists_are_what_they_say(self):
        self.assertEqual(main.names(["a"])("b,a"), ["b", "a"])
        self.assertEqual(main.names(["x"])("all"), ["x"])
        self.assertEqual(main.counts("8,1,4"), [8, 1, 4])
        for bad in ("", "0", "1025", "4,", "4,4", "4x", "-1", "1e1", "99999999999", "²"):
            with self.subTest(bad), self.assertRaises(argparse.ArgumentTypeError):
                main.counts(bad)

    def test_signals_reach_a_child_twice_at_most(self):
        heard = "import sys; sys.path.insert(0, sys.argv[1])\n"
        heard += "from antichain.experiments.start import Children\n"
        heard += "children = Children(); print('ready', flush=True)\n"
        heard += (
            "sys.exit(children.run(['sh', '-c', 'trap \"echo heard\" TERM; echo on; for i in 1 2 3 4 5 6"
            " 7 8; "
        )
        heard += "do sleep 0.2; done'], sys.argv[2]))"
        with tempfile.NamedTemporaryFile("r") as log:
            words = [sys.executable, "-c", heard, str(ROOT / "app/python"), log.name]
            with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
                process.stdout.readline()
                while "on" not in pathlib.Path(log.name).read_text():
                    time.sleep(0.02)
                for _ in range(4):
                    process.send_signal(signal.SIGINT)
                    time.sleep(0.25)
                self.assertEqual(process.wait(), 0)
            self.assertIn(pathlib.Path(log.name).read_text().count("heard"), (1, 2))
