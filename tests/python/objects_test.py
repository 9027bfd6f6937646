"""These tests use profiles, plans and simulations as objects. The program is $ANTICHAIN, and PyTorch is not
needed."""

import io
import json
import os
import pathlib
import shutil
import xml.dom.minidom
from unittest import mock

import numpy

import antichain
from antichain import program
from in_a_folder import InAFolder

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILE = ROOT / "docs/profiles/cpu/resnet18.json"


class Objects(InAFolder):
    def setUp(self):
        super().setUp()
        self.profile = antichain.Profile.read(FILE)

    def test_a_profile_is_read_and_written(self):
        file = self.folder / "profile.json"
        self.profile.write(file)
        self.assertEqual(antichain.Profile.read(file).data, self.profile.data)
        self.assertEqual(len(file.read_text().splitlines()), len(self.profile.names) + 3)
        # It gives the same plan, from the object and from the file.
        plans = [antichain.plan(given, stages=2) for given in (self.profile, file, str(FILE))]
        self.assertEqual(plans[0].stages, plans[1].stages)
        self.assertEqual(plans[0].stages, plans[2].stages)

    def test_times_and_sizes_are_arrays(self):
        self.assertEqual(self.profile.forward_s.shape, (len(self.profile.names),))
        node = self.profile.data["nodes"][5]
        self.assertEqual(
            self.profile.backward_s[5], (node["backward_input_us"] + node["backward_weight_us"]) * 1e-6
        )
        self.assertEqual(self.profile.column("param_bytes").dtype, numpy.int64)

    def test_a_plan_has_every_node_once(self):
        plan = antichain.plan(
            self.profile, stages=3, method="antichain", link_bytes_per_s="1GB", at_most=None
        )
        self.assertEqual(len(plan.stages), 3)
        computed = [n["name"] for n in self.profile.data["nodes"] if n["role"] != "input"]
        self.assertEqual(sorted(sum(plan.stages, [])), sorted(computed))
        # compute_ms is the sum of its nodes' times, in ns.
        self.assertAlmostEqual(
            plan.compute_s.sum(), (self.profile.forward_s + self.profile.backward_s).sum(), places=8
        )

    def test_a_step_is_simulated_as_it_was_planned(self):
        plan = antichain.plan(self.profile, stages=3, microbatches=6)
        step = antichain.simulate(self.profile, plan, microbatches=6)
        # plan.json has milliseconds with six decimals.
        self.assertAlmostEqual(step.step_s, plan.step_s, places=8)
        self.assertEqual(step.column("busy_s").shape, (3,))
        self.assertGreater(
            step.bubble_share, antichain.simulate(self.profile, plan, microbatches=60).bubble_share
        )
        self.assertAlmostEqual(
            antichain.simulate(self.profile, stages=3, microbatches=6).step_s, step.step_s, places=8
        )

    def test_a_notebook_draws_them(self):
        plan = antichain.plan(self.profile, stages=2)
        step = antichain.simulate(self.profile, plan)
        for drawn in (self.profile, plan, step):
            self.assertIn("<", drawn._repr_html_())
            self.assertIn("resnet18", repr(drawn))
        self.assertIn("1f1b", step._repr_html_())
        if shutil.which("dot"):
            xml.dom.minidom.parseString(plan._repr_svg_())
        self.assertIsNone(antichain.Plan(plan.data)._repr_svg_())

    def test_what_is_wrong_is_said_in_one_sentence(self):
        for said, function in (
            ("--stages takes a whole number", lambda: antichain.plan(self.profile, stages=0)),
            ("can't read nowhere.json", lambda: antichain.plan("nowhere.json", stages=2)),
            ("can't read nowhere.json", lambda: antichain.Plan.read("nowhere.json")),
            ("stage", lambda: antichain.plan(self.profile, stages=1000)),
            ("a profile is missing", lambda: antichain.plan(None, stages=2)),
            ("a profile is missing", lambda: antichain.Plan({}).text_for("torch")),
            ("is no plan: it has no stages", lambda: antichain.Plan.read(FILE)),
            ("can't read None", lambda: antichain.Plan.read(None)),
            ("the command is a text", lambda: antichain.run("")),
        ):
            with self.subTest(said), self.assertRaises(antichain.AntichainError) as caught:
                function()
            self.assertIn(said, str(caught.exception))

    def test_files_that_are_asked_for_are_written(self):
        json_file, html_file, out = (self.folder / name for name in ("json", "html", "out"))
        plan = antichain.plan(self.profile, stages=2, runtime="torch", json=json_file, out=out)
        self.assertEqual(antichain.Plan.read(json_file).data, plan.data)
        self.assertEqual(out.read_text(), plan.text_for("torch"))
        simulation = antichain.simulate(self.profile, plan, json=json_file, html=html_file)
        self.assertEqual(antichain.Simulation.read(json_file).data, simulation.data)
        self.assertEqual(html_file.read_text(), simulation.page)

    def test_a_module_of_a_shipped_profile_is_split_once(self):
        for model in ("resnet18", "squeezenet1_0"):
            for stages in (4, 8, 16):
                with self.subTest(model, stages=stages):
                    options = {"profile": FILE.with_name(f"{model}.json"), "stages": stages, "for_": "torch"}
                    printed = antichain.run("plan", **options, listener=lambda *_: None)
                    points = json.loads(printed, object_pairs_hook=list)  # nothing else is on standard output
                    self.assertEqual(len({name for name, _ in points}), stages - 1)

    def test_options_are_passed_as_what_they_mean(self):
        options = {"max_states": numpy.int64(9), "nesterov": False, "flip": numpy.bool_(False)}
        options |= {"no_flip": False, "quiet": True, "plan": None, "for_": "torch", "cuts": ["a", "b"]}
        said = program.flags(["train"], {**options, "lr": 1e-5, "results": pathlib.Path("-r")})
        expected = "max-states=9 no-nesterov no-flip flip quiet for=torch cuts=a,b lr=1e-05 results=-r"
        self.assertEqual(said, ["--" + word for word in expected.split()])
        wrongs = {"quiet": False}, {"stages": {1: 2}}, {"cuts": []}, {"cuts": ["a,b"]}, {"stages": b"2"}
        for wrong in (*wrongs, {"lr": 1j}):
            with self.subTest(wrong), self.assertRaisesRegex(antichain.AntichainError, next(iter(wrong))):
                program.flags(["train"], wrong)

    def test_a_command_is_heard_while_it_runs(self):
        # It goes on when its reader has heard the first line.
        stand_in = self.folder / "antichain"
        stand_in.write_text(
            "#!/bin/sh\necho one\nwhile [ ! -e heard ]; do sleep 0.05; done\n"
            "echo 'antichain: warning: two' >&2\n"
            "case $2 in --json=*) echo '{\"x\": 3}' > ${2#--json=};; esac\n"
            "[ \"$2\" != bad ] || { echo 'antichain: a note' >&2\n"
            "echo 'antichain: it is wrong' >&2; exit 85; }\n"
        )
        stand_in.chmod(0o755)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        heard = []

        def listener(line, error):
            heard.append((line, error))
            pathlib.Path("heard").touch()

        with mock.patch.dict(os.environ, {"ANTICHAIN": str(stand_in)}):
            ran = antichain.run("train", listener=listener, results=None)
            with self.assertRaises(antichain.AntichainError) as caught:
                antichain.run("train", "bad", listener=listener)
            with self.assertRaises(KeyboardInterrupt):
                antichain.run("train", "bad", listener=mock.Mock(side_effect=KeyboardInterrupt))
            out, err = (mock.patch(f"sys.{name}", io.StringIO()) for name in ("stdout", "stderr"))
            with out as out, err as err:
                antichain.run("export")
        self.assertEqual(heard[:2], [("one\n", False), ("antichain: warning: two\n", True)])
        self.assertEqual((ran, ran.warnings, ran.results), ("one\n", ["two"], {"x": 3}))
        self.assertEqual((str(caught.exception), caught.exception.code), ("it is wrong", 85))
        self.assertEqual((out.getvalue(), err.getvalue()), ("one\n", "antichain: warning: two\n"))

    def test_the_program_is_found(self):
        self.assertEqual(program.find(), os.environ["ANTICHAIN"])
        with (
            mock.patch.dict(os.environ, {"ANTICHAIN": "", "PATH": ""}),
            mock.patch.object(program, "_beside", []),
        ):
            self.assertRaisesRegex(antichain.AntichainError, "is not found", program.find)
        with mock.patch.dict(os.environ, {"ANTICHAIN": "/nowhere/antichain"}):
            self.assertRaisesRegex(antichain.AntichainError, "can't be started", antichain.plan, self.profile)
