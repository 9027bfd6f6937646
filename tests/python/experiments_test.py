"""These tests run experiments as a user does, on networks of a few nodes. Figures need matplotlib, and
pictures of networks Graphviz."""

import json
import re
import shutil
import subprocess
import sys
import unittest
import xml.dom.minidom

from antichain.experiments import folder
from experiments_case import Case, PUBLISHED, ROOT, SIMULATED, SWEPT


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

    def test_names_are_no_formulas(self):
        shutil.copy(self.folder / "profiles/one.txt", self.folder / "profiles/$x_$.txt")
        self.run_it("speedup --profiles profiles --models $x_$ --ranks 1,2 --methods antichain --out study")
        self.assertIn(">$x_$, simulated<", self.text("study/figures/speedup-$x_$.svg"))

    def test_numpy_is_not_needed(self):
        code = "import sys; sys.modules['numpy'] = None; import antichain.experiments.__main__"
        subprocess.run([sys.executable, "-c", code], check=True)
