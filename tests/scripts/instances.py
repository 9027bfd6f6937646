#!/usr/bin/env python3
"""Plans public instances, and predicts measured runs.

  tests/scripts/instances.py FOLDER [--program build/antichain] [--only NAME]

FOLDER/dnn-partitioning/throughput-inputs has workloads of msr-fiddle/dnn-partitioning. Each is planned for
its own accelerators and CPU, and for 2, 4, 8 and 16 accelerators alone, where transfers are added to
computing and where they overlap with it. Each plan must be proved optimal, and its loads by the publication's
formula must be what the program says, to 1e-6. The table has the largest load in the file's unit, that with
overlap after it, and the seconds of the slowest search.

FOLDER/sailor has measured runs of eth-easl/sailor. The table has the iteration as predicted and as measured,
and the peak of memory. Before it, OPT-350M is planned for many GPUs with replicas (objective compute).
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "app/python"))

from antichain.instances.__main__ import text_of  # noqa: E402
from antichain.instances.dnn_partitioning import Workload  # noqa: E402
from antichain.instances.sailor import CONFIGS, OPT_OF_MIT, Run, read  # noqa: E402

OBJECTIVES = ("load", "overlapped-load")
SIZES = (None, 2, 4, 8, 16)  # accelerators; None: the file's, and its CPUs
TOLERANCE = 1e-6


def best(program, workload, accelerators, objective, folder):
    """Returns the largest load, the number of stages and the seconds of the search; None where none fits."""
    cpus = workload.cpus if accelerators is None else 0
    accelerators = workload.accelerators if accelerators is None else accelerators
    for name, content in workload.files(accelerators, cpus).items():
        (folder / name).write_text(text_of(content))
    words = [program, "plan", "--profile", folder / "profile.json", "--cluster", folder / "cluster.json"]
    words += ["--objective", objective, "--at-most", "--json", folder / "plan.json"]
    run = subprocess.run(words, capture_output=True, text=True)
    if run.returncode and "does not fit the memory" in run.stderr:
        return None
    if run.returncode:
        sys.exit(run.stderr)
    plan = json.loads((folder / "plan.json").read_text())
    on_cpu = range(accelerators, accelerators + cpus)
    load = max(workload.loads(plan, on_cpu, objective == "overlapped-load"))
    if not plan["proved_optimal"]:
        sys.exit(f"{workload.model}: not proved optimal: {words}")
    if abs(load - plan["bottleneck_ms"] / 1e3) > TOLERANCE * load:
        sys.exit(f"{workload.model}: the load is {load}, but {plan['bottleneck_ms'] / 1e3} is said: {words}")
    return load, len(plan["stages"]), plan["planning_ms"] / 1e3


def plan_workloads(inputs, program, only):
    print("| workload | own, CPU | 2 | 4 | 8 | 16 | slowest search, s |\n|---|---|---|---|---|---|---|")
    for file in sorted(inputs.glob("*/*.json")):
        if only not in str(file):
            continue
        workload = Workload(json.loads(file.read_text()), file.stem)
        cells, slowest = [], 0
        for size in SIZES:
            loads = []
            for objective in OBJECTIVES:
                with tempfile.TemporaryDirectory() as folder:
                    found = best(program, workload, size, objective, pathlib.Path(folder))
                loads.append(f"{found[0]:.6g}" if found else "none fits")
                slowest = max(slowest, found[2] if found else 0)
            cells.append(", ".join(dict.fromkeys(loads)))
        name = f"{file.parent.name.removesuffix('Graphs').lower()} {file.stem.lower().replace('_', ' ')}"
        print(f"| {name} | {' | '.join(cells)} | {slowest:.2f} |", flush=True)


MEMORY_GB = {"A100-40": 40, "GH-96": 96, "RTX-2080": 11, "RTX-3090": 24, "Titan-RTX": 24, "V100-16": 16}
FLEETS = (  # micro-batch, and the GPUs of each kind
    (2, {"A100-40": 128}),
    (2, {"A100-40": 128, "V100-16": 384}),
    (1, {kind: 171 if place < 4 else 170 for place, kind in enumerate(MEMORY_GB)}),
)


class Fleet(Run):
    """GPUs for which OPT-350M is planned in 1,024 micro-batches."""

    def __init__(self, data, microbatch, counts):
        self.model, self.counts, self.degree, self.microbatch = OPT_OF_MIT, counts, 1, microbatch
        self.config = read(data / "configs" / CONFIGS[self.model])
        profiles = {kind: read(data / "profiles" / self.model / kind / "profile.json") for kind in counts}
        self.times = {kind: times[str(microbatch)]["1"] for kind, times in profiles.items()}
        links = read(data / "network_coeffs_all_homo.json")["inter"]
        self.bytes_per_s = {kind: links[kind]["1"][1] for kind in counts if kind in links}
        self.stage_of = [0] * self.config["num_all_layers"]
        self.layers, self.replicas = [len(self.stage_of)], [list(self.bytes_per_s)]

    def moving_s(self, stage):
        return 0

    def files(self):
        link = {"bytes_per_s": self.link([0]), "latency_us": 0}
        devices = [
            {"speed": 1, "memory_bytes": MEMORY_GB[kind] * 10**9, "profile": kind}
            for kind, count in self.counts.items()
            for _ in range(count)
        ]
        return {
            "profile.json": self.profile(next(iter(self.counts))),
            **{f"{kind}.json": self.profile(kind) for kind in self.counts},
            "cluster.json": {
                "format": "antichain cluster 1",
                "profiles": [{"name": kind, "file": f"{kind}.json"} for kind in self.counts],
                "within_node": link,
                "between_nodes": link,
                "nodes": [{"devices": devices}],
            },
        }


def plan_fleets(data, program):
    print("| GPUs | slowest stage, ms | gap, % | search, s |\n|---|---|---|---|")
    for microbatch, counts in FLEETS:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for file, content in Fleet(data, microbatch, counts).files().items():
                (folder / file).write_text(text_of(content))
            words = [program, "plan", "--profile", folder / "profile.json", "--cluster"]
            words += [folder / "cluster.json", "--replicas", "auto", "--microbatches", "1024"]
            words += ["--objective", "compute"]
            subprocess.run([*words, "--json", folder / "plan.json"], check=True, stdout=subprocess.DEVNULL)
            plan = json.loads((folder / "plan.json").read_text())
        gpus = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        gap = (plan["bottleneck_ms"] / plan["lower_bound_ms"] - 1) * 100
        slowest, took = f"{plan['bottleneck_ms']:.4g}", f"{plan['planning_ms'] / 1e3:.2f}"
        print(f"| {gpus} | {slowest} | {gap:.2f} | {took} |", flush=True)
    print()


def simulated(program, run, folder):
    for name, content in run.files().items():
        (folder / name).write_text(text_of(content))
    words = [program, "simulate", "--profile", folder / "profile.json", "--cluster", folder / "cluster.json"]
    words += ["--plan", folder / "plan.json", "--microbatches", str(run.microbatches), "--schedule", "1f1b"]
    words += ["--overlap-steps", "off", "--json", folder / "step.json"]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    step = json.loads((folder / "step.json").read_text())
    return step["step_s"], max(step["peak_memory_bytes"])


def predict_runs(data, program, only):
    if only in "fleets":
        plan_fleets(data, program)
    print("| run | predicted, s | measured, s | error, % | predicted, GB | measured, GB |")
    print("|---|---|---|---|---|---|")
    errors = {}
    for file in sorted(data.glob("validation/**/plan_config_*.json")):
        name = file.relative_to(data / "validation")
        if only not in str(file):
            continue
        try:
            run = Run(data, file)
        except ValueError as problem:
            print(f"| {name.parent} {name.stem} | {problem} | | | | |")
            continue
        with tempfile.TemporaryDirectory() as folder:
            step_s, peak = simulated(program, run, pathlib.Path(folder))
        error = (step_s / run.measured_s - 1) * 100
        groups = [name.parts[0]]
        if name.parts[0] != "mit":
            groups = [name.parts[1], f"{name.parts[1]}, micro-batches of {run.microbatch}"]
        for group in groups:
            errors.setdefault(group, []).append(abs(error))
        print(
            f"| {name.parent} {name.stem.removeprefix('plan_config_')} | {step_s:.4g} | {run.measured_s:.4g} "
            f"| {error:+.1f} | {peak / 1e9:.1f} | {run.peak_bytes / 1e9:.1f} |",
            flush=True,
        )
    for group, all_errors in sorted(errors.items()):
        median, most = statistics.median(all_errors), max(all_errors)
        print(f"\n{group}: {len(all_errors)} runs, median error {median:.1f} %, at most {most:.1f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--program", default=str(SOURCE / "build/antichain"))
    parser.add_argument("--only", default="", help="instances whose path has this text")
    options = parser.parse_args()
    parts = {"dnn-partitioning/throughput-inputs": plan_workloads, "sailor": predict_runs}
    there = {options.folder / part: run for part, run in parts.items() if (options.folder / part).is_dir()}
    if not there:
        print(f"skipped: {options.folder} has neither {' nor '.join(parts)}")
        sys.exit(77)
    for folder, run in there.items():
        run(folder, options.program, options.only)


if __name__ == "__main__":
    main()
