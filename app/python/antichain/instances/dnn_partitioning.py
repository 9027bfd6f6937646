"""Throughput workloads of J. Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph
Operators", NeurIPS 2020 (github.com/msr-fiddle/dnn-partitioning, throughput-inputs).

A file has operators of the forward and of the backward, each with its time on an accelerator and on a CPU. A
tensor is moved between an accelerator and the memory of the host in the time `cost`. Operators of one
colorClass share a device. Here each operator of the forward is a node, and the first of its class has the
times of the class's backward. A class of the backward alone has two nodes without work, one that comes after
the classes whose gradients it makes and one that comes before those whose gradients it takes.

The files count milliseconds. Here they are seconds, so that the planner, which counts whole nanoseconds,
rounds nothing that matters.
"""

import graphlib

SCALE = 1e9  # nanoseconds, and bytes at one a nanosecond, of the file's 1


class Workload:
    """A workload by its file's content. Throws KeyError for a field that is missing."""

    def __init__(self, data, model):
        self.model = model
        self.accelerators, self.cpus = data["maxFPGAs"], data["maxCPUs"]
        self.memory_bytes = int(data["maxSizePerFPGA"])
        self.operators = {node["id"]: node for node in data["nodes"]}
        self.class_of = {
            key: node.get("colorClass", f"of {key}") for key, node in self.operators.items()
        }
        self.consumers, self.cost = {}, {}
        for edge in data["edges"]:
            self.consumers.setdefault(edge["sourceId"], []).append(edge["destId"])
            self.cost[edge["sourceId"]] = edge["cost"]

    def is_backward(self, key):
        return bool(self.operators[key]["isBackwardNode"])

    def nodes(self):
        """Returns the profile's nodes as {name: names of its inputs}, in order; the names of the nodes of
        each class, of which the first has the times of the class's backward; and those of all operators."""
        names = {key: f"{key} {node['name']}" for key, node in self.operators.items()}
        of_class, inputs = {}, {}
        for key in self.operators:
            if not self.is_backward(key):
                of_class.setdefault(self.class_of[key], []).append(names[key])
                inputs[names[key]] = []
        alone = sorted({self.class_of[key] for key in self.operators} - set(of_class), key=str)
        for its_class in alone:
            of_class[its_class] = [f"backward {its_class}, after", f"backward {its_class}, before"]
            inputs.update((name, []) for name in of_class[its_class])
        for key, consumers in self.consumers.items():
            for consumer in consumers:
                mine, theirs = self.class_of[key], self.class_of[consumer]
                back = self.is_backward(key), self.is_backward(consumer)
                if not any(back):
                    inputs[names[consumer]].append(names[key])
                elif all(back) and (mine in alone or theirs in alone):
                    inputs[of_class[mine][0]].append(of_class[theirs][-1 if theirs in alone else 0])
        order = graphlib.TopologicalSorter({name: sorted(set(before)) for name, before in inputs.items()})
        return {name: sorted(set(inputs[name])) for name in order.static_order()}, of_class, names

    def profile(self, time, device):
        """Returns a profile.json whose times are this field of the file."""
        inputs, of_class, names = self.nodes()
        index = {name: number for number, name in enumerate(inputs)}
        nodes = [
            {
                "id": number,
                "name": name,
                "op": "operator",
                "role": "compute",
                "inputs": sorted(index[before] for before in inputs[name]),
                "needs_gradient": False,
                "forward_us": 0.0,
                "backward_input_us": 0.0,
                "backward_weight_us": 0.0,
                "update_us": 0.0,
                "output_bytes": 0,
                "param_bytes": 0,
                "frozen_bytes": 0,
                "stash_bytes": 0,
                "keeps_output": False,
                "flops": 0,
            }
            for name, number in index.items()
        ]
        node_of = {
            key: index[of_class[self.class_of[key]][0] if self.is_backward(key) else names[key]]
            for key in self.operators
        }
        for key, operator in self.operators.items():
            node = nodes[node_of[key]]
            field = "backward_input_us" if self.is_backward(key) else "forward_us"
            node[field] += operator[time] * SCALE / 1e3
            node["frozen_bytes"] += int(operator["size"])
            if time == "fpgaLatency" and not operator["supportedOnFpga"]:
                node["barred"] = True
        sent = []
        for key, consumers in self.consumers.items():
            on = sorted({node_of[key], *(node_of[consumer] for consumer in consumers)})
            if len(on) > 1:
                sent.append({"nodes": on, "bytes": round(self.cost[key] * SCALE)})
        for node in nodes:
            for field in ("forward_us", "backward_input_us"):
                node[field] = round(node[field], 3)
        return {
            "format": "antichain profile 1",
            "model": self.model,
            "graph_hash": "",
            "device": device,
            "microbatch": 0,
            "threads": 1,
            "ranks_at_once": 1,
            "link": {"bytes_per_s": 1e9, "latency_us": 0},
            "overhead_us": 0,
            "together": [
                sorted(index[name] for name in its_nodes)
                for its_nodes in of_class.values()
                if len(its_nodes) > 1
            ],
            "sent": sent,
            "nodes": nodes,
        }

    def cluster(self, accelerators, cpus):
        """Returns a cluster.json of so many devices, whose CPUs have the profile cpu.json."""
        kinds = [{"speed": 1, "memory_bytes": self.memory_bytes, "count": accelerators}]
        if cpus:
            kinds.append({"speed": 1, "memory_bytes": 0, "profile": "cpu", "host": True, "count": cpus})
        link = {"bytes_per_s": 1e9, "latency_us": 0}
        return {
            "format": "antichain cluster 1",
            "profiles": [{"name": "cpu", "file": "cpu.json"}] if cpus else [],
            "within_node": link,
            "between_nodes": link,
            "nodes": [{"devices": kinds}],
        }

    def files(self, accelerators=None, cpus=None):
        """Returns {file name: content}."""
        accelerators = self.accelerators if accelerators is None else accelerators
        cpus = self.cpus if cpus is None else cpus
        files = {
            "profile.json": self.profile("fpgaLatency", "accelerator"),
            "cluster.json": self.cluster(accelerators, cpus),
        }
        if cpus:
            files["cpu.json"] = self.profile("cpuLatency", "cpu")
        return files

    def loads(self, plan, cpus, overlapped):
        """Returns the load of each stage of a plan.json, in the file's unit, by the publication's formula.

        cpus        the numbers of the cluster's devices that are CPUs
        overlapped  whether an accelerator computes while it moves tensors
        """
        _, of_class, names = self.nodes()
        stage_of = {name: s for s, stage in enumerate(plan["stages"]) for name in stage["names"]}
        stage = {
            key: stage_of[of_class[self.class_of[key]][0] if self.is_backward(key) else names[key]]
            for key in self.operators
        }
        compute, moved, size = ([0.0] * len(plan["stages"]) for _ in range(3))
        host = [bool(set(its.get("devices", its["ranks"])) & set(cpus)) for its in plan["stages"]]
        for key, operator in self.operators.items():
            compute[stage[key]] += operator["cpuLatency" if host[stage[key]] else "fpgaLatency"]
            size[stage[key]] += operator["size"]
        for key, consumers in self.consumers.items():
            on = {stage[key], *(stage[consumer] for consumer in consumers)}
            for s in on if len(on) > 1 else ():
                moved[s] += 0 if host[s] else self.cost[key]
        for s, its_size in enumerate(size):
            if not host[s] and its_size > self.memory_bytes:
                raise ValueError(f"stage {s} has {its_size} bytes, an accelerator {self.memory_bytes}")
        return [max(c, t) if overlapped else c + t for c, t in zip(compute, moved)]
