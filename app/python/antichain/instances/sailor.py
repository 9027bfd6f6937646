"""Profiles and measured runs of F. Strati et al., "Sailor: Automating Distributed Training over Dynamic,
Heterogeneous, and Geo-distributed Clusters", SOSP 2025 (github.com/eth-easl/sailor).

A run (validation/…/plan_config_*.json) says which layers and GPUs each stage had, and what an iteration
took. Here it is a plan, with a profile for each kind of GPU and a cluster, so that `antichain simulate`
predicts the iteration. Megatron sends and receives between its actions and not beside them. So each stage has
a node that takes as long as its transfers, in the forward and in the backward, and the tensors between stages
take no time of their own. Replicas of different kinds wait for each other, so all of a stage have the times
of the slowest.

What the files do not say: tensors between stages are N x 2048 x hidden in float32, gradients are float32,
Adam keeps 8 bytes a parameter, and what a layer keeps for its backward is s b h (10 + 24 / t + 5 a s / (h t))
bytes (V. Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", MLSys 2023).
"""

import json

FOLDERS = {"OPT-350": "OPT-350", "GPT-NEO": "GPT-Neo-2.7"}  # of validation and of profiles
CONFIGS = {"OPT-350": "training_config_opt_350.json", "GPT-Neo-2.7": "training_config_gpt_neo27.json"}
OPT_OF_MIT = "OPT-350"  # validation/mit has runs of this model, and no folder of its name


def read(file):
    return json.loads(file.read_text())


class Run:
    """A measured run. `data` is Sailor's folder, `file` a plan_config_*.json in it. Throws KeyError for a
    profile or field that is missing, and ValueError for layers that are not the model's."""

    def __init__(self, data, file):
        run = read(file)
        pipeline = run["pipeline_list"][0]
        named = [part for part in file.parts if part in FOLDERS]
        self.model = FOLDERS[named[-1]] if named else OPT_OF_MIT
        self.config = read(data / "configs" / CONFIGS[self.model])
        self.measured_s, self.peak_bytes = run["real"], run["max_mem"]
        self.microbatch, self.microbatches = run["mbs"], run["gbs"] // run["mbs"]
        self.layers = [len(layers) for layers in pipeline["layers_per_stage"]]
        layers, all_layers = sum(self.layers), self.config["num_all_layers"]
        if layers != all_layers:
            raise ValueError(f"the stages have {layers} layers, and {self.model} has {all_layers}")
        self.replicas = [[replica[0][0][0] for replica in stage] for stage in pipeline["tmp_per_stage"]]
        degrees = {replica[1] for stage in pipeline["tmp_per_stage"] for replica in stage}
        if len(degrees) > 1:
            raise ValueError(f"the tensor-parallel degrees {sorted(degrees)} differ")
        (self.degree,) = degrees
        self.times = {}
        for kind in {kind for stage in self.replicas for kind in stage}:
            measured = read(data / "profiles" / self.model / kind / "profile.json")
            self.times[kind] = measured[str(self.microbatch)][str(self.degree)]
            if len(self.times[kind]) != all_layers:
                profiled = f"the profile of {kind} has {len(self.times[kind])} layers"
                raise ValueError(f"{profiled}, and {self.model} has {all_layers}")
        links = read(data / "network_coeffs_all_homo.json")["inter"]
        self.bytes_per_s = {kind: links[kind]["1"][1] for kind in self.times}
        self.stage_of = [stage for stage, layers in enumerate(self.layers) for _ in range(layers)]
        self.kind_of = [
            max(kinds, key=lambda kind, s=s: self.stage_s(kind, s)) for s, kinds in enumerate(self.replicas)
        ]

    def stage_s(self, kind, stage):
        return sum(
            sum(self.times[kind][str(layer)][:2]) for layer, its in enumerate(self.stage_of) if its == stage
        )

    def link(self, stages):
        """Returns the bytes per second of the slowest GPU of these stages."""
        return min(self.bytes_per_s[kind] for stage in stages for kind in self.replicas[stage])

    def moving_s(self, stage):
        """Returns how long a stage takes to send and receive a micro-batch's tensors, one way."""
        config = self.config
        size = 4 * self.microbatch * config["sequence_length"] * config["hidden_size"]
        others = [other for other in (stage - 1, stage + 1) if 0 <= other < len(self.layers)]
        return sum(size / self.link((stage, other)) for other in others)

    def kept_bytes(self):
        """Returns what a layer keeps of one micro-batch on one GPU."""
        s, b, h, a, t = (
            self.config["sequence_length"],
            self.microbatch,
            self.config["hidden_size"],
            self.config["heads"],
            self.degree,
        )
        return int(s * b * h * (10 + 24 / t + 5 * a * s / (h * t)))

    def profile(self, kind):
        last, width = len(self.stage_of) - 1, self.config["hidden_size"]
        nodes = []

        def add(name, forward_s, backward_s, update_s=0.0, parameters=0, kept=0):
            nodes.append(
                {
                    "id": len(nodes),
                    "name": name,
                    "op": "layer",
                    "role": "compute",
                    "inputs": [len(nodes) - 1] if nodes else [],
                    "needs_gradient": True,
                    "forward_us": round(forward_s * 1e6, 3),
                    "backward_input_us": round(backward_s * 1e6, 3),
                    "backward_weight_us": 0.0,
                    "update_us": round(update_s * 1e6, 3),
                    "output_bytes": 0,
                    "param_bytes": 4 * parameters // self.degree,
                    "optimiser_bytes": 8 * parameters // self.degree,
                    "stash_bytes": kept,
                    "keeps_output": False,
                    "flops": 0,
                }
            )

        for layer, stage in enumerate(self.stage_of):
            if layer == 0 or self.stage_of[layer - 1] != stage:
                add(f"transfers {stage}", self.moving_s(stage), self.moving_s(stage))
            ends = layer in (0, last)
            add(
                f"layer {layer}",
                *self.times[kind][str(layer)],
                parameters=self.config["vocab_size"] * width if ends else 12 * width * width,
                kept=0 if ends else self.kept_bytes(),
            )
        return {
            "format": "antichain profile 1",
            "model": self.model,
            "graph_hash": "",
            "device": kind,
            "microbatch": self.microbatch,
            "threads": 1,
            "ranks_at_once": 1,
            "link": {"bytes_per_s": self.link(range(len(self.layers))), "latency_us": 0},
            "overhead_us": 0,
            "nodes": nodes,
        }

    def files(self):
        """Returns {file name: content}."""
        kinds = sorted(set(self.kind_of))
        link = {"bytes_per_s": self.link(range(len(self.layers))), "latency_us": 0}
        devices, stages, nodes = [], [], iter(range(len(self.stage_of) + len(self.layers)))
        for stage, replicas in enumerate(self.replicas):
            ranks = [len(devices) + replica for replica in range(len(replicas))]
            devices += [{"speed": 1, "memory_bytes": 0, "profile": self.kind_of[stage]} for _ in ranks]
            own = [next(nodes) for _ in range(self.layers[stage] + 1)]
            stages.append({"stage": stage, "ranks": ranks, "nodes": own})
        return {
            "profile.json": self.profile(self.kind_of[0]),
            **{f"{kind}.json": self.profile(kind) for kind in kinds},
            "cluster.json": {
                "format": "antichain cluster 1",
                "profiles": [{"name": kind, "file": f"{kind}.json"} for kind in kinds],
                "within_node": link,
                "between_nodes": link,
                "nodes": [{"devices": devices}],
            },
            "plan.json": {
                "format": "antichain plan 1",
                "model": self.model,
                "graph_hash": "",
                "stages": stages,
            },
        }
