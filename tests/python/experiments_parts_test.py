"""The parts of experiments that need no run: cells, reports, tables, and the options of the command."""

import argparse
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from antichain import AntichainError
from antichain.experiments import cells, document, folder, __main__ as main, published, start, study, table1
from antichain.experiments.report import starved_cells
from experiments_case import Case, ROOT

FULL = {
    "format": "antichain cell 1", "mode": "measured", "model": "m", "method": "antichain+replicas",
    "ranks": 8, "microbatch": 16, "microbatches": 32, "plan_hash": "0123456789abcdef", "stages": "3+5x1",
    "planning_s": 0.1 + 0.2, "one_device_s": 1.5, "slowest_s": 0.25, "imbalance": 1.01, "time_scale": 2.5,
    "boundary_bytes": 123456789012, "memory_bytes": 5,
    "predicted": {"step_s": 1 / 3, "bubble_share": -0.25, "busy_s": [0.1, 0.2, 0.3]},
    "rehearsed": {"step_s": 2 / 3, "bubble_share": 0.5, "busy_s": []},
    "measured": {"step_s": 0.7, "steps": 9, "data": "CIFAR-10", "loss": [], "starved_share": 0.1},
}


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
