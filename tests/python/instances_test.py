"""Workloads of other publications: what is read of them, and that their plans are the best of all."""

import itertools
import json
import os
import pathlib
import random
import unittest

import antichain
from antichain.instances import sailor
from antichain.instances.__main__ import text_of
from antichain.instances.dnn_partitioning import Workload
from in_a_folder import InAFolder

SHARED = pathlib.Path(__file__).resolve().parents[3] / "shared/instances"


def drawn(seed):
    """Returns a small workload: a forward, a backward of most of it, and classes of which two may be on a
    cycle. Times are multiples of 1/8, so that sums are exact."""
    rng = random.Random(seed)
    forward = [*range(rng.randint(3, 5))]
    edges = [(u, v) for u, v in itertools.combinations(forward, 2) if rng.random() < 0.5]
    class_of = {v: v if rng.random() < 0.8 else 0 for v in forward}
    backward = {v: 10 + v for v in forward if rng.random() < 0.7}
    edges += [(backward[v], backward[u]) for u, v in edges if u in backward and v in backward]
    edges += [(v, key) for v, key in backward.items()]
    class_of.update((key, class_of[v]) for v, key in backward.items())
    if backward and rng.random() < 0.5:  # a class of the backward alone
        class_of[20] = 20
        edges.append((rng.choice([*backward.values()]), 20))
    costs = {u: rng.randrange(4) / 8 for u in class_of}
    nodes = [
        {
            "id": key,
            "name": f"node{key}",
            "supportedOnFpga": rng.random() < 0.95,
            "cpuLatency": rng.randrange(16) / 8,
            "fpgaLatency": rng.randrange(8) / 8,
            "isBackwardNode": key >= 10,
            "colorClass": its_class,
            "size": rng.randrange(4),
        }
        for key, its_class in class_of.items()
    ]
    return {
        "maxSizePerFPGA": rng.choice([8, 12, 100]),
        "maxFPGAs": rng.randint(1, 2),
        "maxCPUs": rng.randint(0, 1),
        "nodes": nodes,
        "edges": [{"sourceId": u, "destId": v, "cost": costs[u]} for u, v in edges],
    }


def stages_allowed(data, of_class):
    """Says whether an edge of the forward, or one of the backward between classes of which one has no
    forward, leads the wrong way."""
    nodes = {node["id"]: node for node in data["nodes"]}
    forward = {node["colorClass"] for node in data["nodes"] if not node["isBackwardNode"]}
    for edge in data["edges"]:
        u, v = nodes[edge["sourceId"]], nodes[edge["destId"]]
        a, b = of_class[u["colorClass"]], of_class[v["colorClass"]]
        alone = not {u["colorClass"], v["colorClass"]} <= forward
        if not u["isBackwardNode"] and not v["isBackwardNode"] and a > b:
            return False
        if u["isBackwardNode"] and v["isBackwardNode"] and alone and a < b:
            return False
    return True


def best_of_all(data, overlapped):
    """Returns the smallest largest load over every way to give each class a stage and each stage a device."""
    classes = sorted({node["colorClass"] for node in data["nodes"]})
    nodes = {node["id"]: node for node in data["nodes"]}
    devices = data["maxFPGAs"] + data["maxCPUs"]
    best = float("inf")
    for cpu in [None, *range(devices)] if data["maxCPUs"] else [None]:
        stages = range(devices if cpu is not None else data["maxFPGAs"])
        for chosen in itertools.product(stages, repeat=len(classes)):
            of_class = dict(zip(classes, chosen))
            if not stages_allowed(data, of_class):
                continue
            stage = {key: of_class[node["colorClass"]] for key, node in nodes.items()}
            compute, moved, size = [0] * devices, [0] * devices, [0] * devices
            for key, node in nodes.items():
                on_cpu = stage[key] == cpu
                allowed = on_cpu or node["supportedOnFpga"]
                compute[stage[key]] += node["cpuLatency" if on_cpu else "fpgaLatency"] if allowed else 1e9
                size[stage[key]] += 0 if on_cpu else node["size"]
            for key in nodes:
                out = [edge for edge in data["edges"] if edge["sourceId"] == key]
                on = {stage[key], *(stage[edge["destId"]] for edge in out)}
                for s in on if len(on) > 1 else ():
                    moved[s] += out[0]["cost"] if s != cpu else 0
            if max(size) <= data["maxSizePerFPGA"]:
                load = max(max(c, t) if overlapped else c + t for c, t in zip(compute, moved))
                best = min(best, load)
    return best if best < 1e9 else None


class DnnPartitioning(InAFolder):
    def plan_of(self, workload, objective):
        for name, content in workload.files().items():
            (self.folder / name).write_text(text_of(content))
        antichain.run(
            "plan",
            profile=self.folder / "profile.json",
            cluster=self.folder / "cluster.json",
            objective=objective,
            at_most=True,
            json=self.folder / "plan.json",
            listener=lambda line, error: None,
        )
        return json.loads((self.folder / "plan.json").read_text())

    def test_plans_are_the_best_of_all(self):
        none = 0
        for seed in range(30):
            data = drawn(seed)
            workload = Workload(data, "drawn")
            for objective in ("load", "overlapped-load"):
                expected = best_of_all(data, objective == "overlapped-load")
                with self.subTest(seed=seed, objective=objective):
                    if expected is None:
                        none += 1
                        with self.assertRaises(antichain.AntichainError):
                            self.plan_of(workload, objective)
                        continue
                    plan = self.plan_of(workload, objective)
                    cpus = range(data["maxFPGAs"], data["maxFPGAs"] + data["maxCPUs"])
                    loads = workload.loads(plan, cpus, objective == "overlapped-load")
                    self.assertEqual(max(loads), expected)
                    self.assertEqual(plan["bottleneck_ms"], expected * 1e3)
                    self.assertTrue(plan["proved_optimal"])
        self.assertGreater(none, 0)

    def test_a_published_workload(self):
        file = SHARED / "dnn-partitioning/throughput-inputs/LayerGraphs/bert24_training.json"
        if not file.is_file():
            self.skipTest(f"{file} is absent")
        workload = Workload(json.loads(file.read_text()), "bert24")
        plan = self.plan_of(workload, "load")
        self.assertTrue(plan["proved_optimal"])
        self.assertAlmostEqual(max(workload.loads(plan, [6], False)), 41.7458125, places=5)

    def test_a_file_of_something_else_is_refused(self):
        (self.folder / "other.json").write_text("{}")
        words = f"dnn-partitioning {self.folder}/other.json --out {self.folder}/out"
        code = os.spawnlp(
            os.P_WAIT, "sh", "sh", "-c", f"python3 -m antichain.instances {words} 2> {self.folder}/said"
        )
        self.assertEqual(code, 1)
        self.assertIn("can't read", (self.folder / "said").read_text())


def measured_run(folder, stages, replicas, microbatches):
    """Writes a folder like Sailor's, with a run of three layers, and returns its file."""

    def write(name, content):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(content))
        return folder / name

    sizes = {"sequence_length": 8, "hidden_size": 4, "heads": 2, "vocab_size": 10, "num_all_layers": 3}
    write("configs/training_config_opt_350.json", sizes)
    write("network_coeffs_all_homo.json", {"inter": {kind: {"1": [[], 1e3]} for kind in ("slow", "fast")}})
    for kind, factor in (("slow", 2), ("fast", 1)):
        times = {str(layer): [factor, 2 * factor, 0.5 * factor] for layer in range(3)}
        write(f"profiles/OPT-350/{kind}/profile.json", {"1": {"2": times}})
    run = {
        "mbs": 1,
        "gbs": microbatches,
        "real": 1,
        "max_mem": 1,
        "pipeline_list": [
            {
                "layers_per_stage": stages,
                "tmp_per_stage": [[[[[kind, 2, "a"]], 2] for kind in replicas] for _ in stages],
            }
        ],
    }
    return write("validation/mit/plan_config_1.json", run)


class Sailor(InAFolder):
    def step_s(self, stages, replicas, microbatches):
        run = sailor.Run(self.folder, measured_run(self.folder, stages, replicas, microbatches))
        for name, content in run.files().items():
            (self.folder / name).write_text(text_of(content))
        antichain.run(
            "simulate",
            profile=self.folder / "profile.json",
            cluster=self.folder / "cluster.json",
            plan=self.folder / "plan.json",
            microbatches=run.microbatches,
            overlap_steps="off",
            json=self.folder / "step.json",
            listener=lambda line, error: None,
        )
        return json.loads((self.folder / "step.json").read_text())["step_s"]

    def test_an_iteration_is_simulated(self):
        all_layers = [[0, 1, 2]]
        self.assertAlmostEqual(self.step_s(all_layers, ["fast"], 4), 4 * 9 + 1.5, places=3)
        # Two replicas take turns, and the faster one waits. Of 272 parameters each has a half.
        reduce_s = 272 / 2 * 4 / 1e3
        self.assertAlmostEqual(self.step_s(all_layers, ["fast", "slow"], 4), 2 * 18 + reduce_s + 3, places=3)
        # A forward of the first stage, both actions of the second, two backwards and an update of the first.
        moving_s = 4 * 8 * 4 / 1e3
        two = 2 + (1 + 2) + 2 * 4 + 1 + 5 * moving_s
        self.assertAlmostEqual(self.step_s([[0, 1], [2]], ["fast"], 2), two, places=3)

    def test_layers_that_no_profile_has_are_refused(self):
        file = measured_run(self.folder, [[0, 1], [2]], ["fast"], 2)
        config = self.folder / "configs/training_config_opt_350.json"
        config.write_text(config.read_text().replace('"num_all_layers": 3', '"num_all_layers": 4'))
        with self.assertRaisesRegex(ValueError, "3 layers"):
            sailor.Run(self.folder, file)


if __name__ == "__main__":
    unittest.main()
