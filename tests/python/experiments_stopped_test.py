"""Experiments that are interrupted, lose a rank or are asked for something wrong: nothing that was measured
is lost, and mistakes are said before anything runs."""

import re
import shutil
import signal
import time

from experiments_case import CHAIN, Case, REHEARSED


class Stopped(Case):
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


class Mistakes(Case):
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

    def test_a_fault_of_the_system_is_a_sentence(self):
        model = "x" * 250
        shutil.copy(self.folder / "profiles/one.txt", self.folder / f"profiles/{model}.txt")
        words = f"sweep --profiles profiles --models {model} --ranks 1 --methods antichain --out study"
        self.refused(words, 3, "File name too long")
