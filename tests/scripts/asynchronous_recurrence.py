#!/usr/bin/python3
"""Compares asynchronous training with its definition, a recurrence without any pipeline, in float64.

    tests/scripts/asynchronous_recurrence.py FOLDER [--program build/antichain] [--only NAME]
        [--optimiser NAME] [--seeds 8] [--steps 10]

Each seed draws a network without batch norm, a cut into 2 to 4 stages, micro-batches, and where the run is
evaluated and saved. The network trains under 2bw, pipedream and stale, and with each prediction under one of
these, with each optimiser, on as many ranks and on one that emulates the delays. Both must come to the same
hash; 2bw's must be one rank's, too.

PyTorch follows the tables of docs/schedules.md from the same weights, batches and rates, in float64 and in
float32. An error is the distance of all weights from those in float64, relative to how far these have moved.
The table has the quotients of our error and float32's. Their geometric mean over the seeds may be 1.5, and
none may be above 4. As a check of the check, float64 with every delay one shorter is far away: 100 times
float32's error, by the geometric mean. FOLDER keeps the files. It needs torch, h5py and numpy (Debian:
python3-torch, python3-h5py).
"""
import argparse
import json
import math
import pathlib
import random
import statistics
import subprocess
import sys

try:
    import h5py
    import numpy
    import torch
    from torch.nn import functional
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

POLICIES = ("2bw", "pipedream", "stale")
# By name: whether it goes step by step, whether weights decay meanwhile, and whether backwards read what
# their forwards read.
PREDICTIONS = {"spectrain": (False, False, False), "pipeoptim": (False, True, False),
               "xpipe": (False, False, True), "momentum": (True, True, True)}
OPTIMISERS = ("sgd", "adamw", "muon")
CLASSES = 10
MEAN_LIMIT, LIMIT = 1.5, 4.0
FAR = 100  # times float32's error: at least so far away is another delay


class Drawn:
    """A network and how it is cut, as seed and policy have them."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.nodes = []
        x = self.add("average_pool", ["images"], kernel=4, stride=4)
        x = self.scaled(self.convolution(x, self.draw.choice((8, 12, 16)), 1))
        for _ in range(self.draw.randint(2, 4)):
            x = self.draw.choice((self.narrower, self.residual, self.gated))(x)
        x = self.add("mean", [x], axes=[2, 3]) if self.draw.random() < 0.5 else self.add("flatten", [x])
        for _ in range(self.draw.randint(0, 2)):
            x = self.activated(self.add("linear", [x], out=self.draw.choice((16, 24, 40))))
        self.last = self.add("linear", [x], out=CLASSES)
        self.nodes.append({"name": "loss", "op": "softmax_cross_entropy", "inputs": [self.last, "labels"]})

    def add(self, op, inputs, **options):
        name = f"n{len(self.nodes)}_{op}"
        node = {"name": name, "op": op, "inputs": inputs}
        self.nodes.append(node | {"options": options} if options else node)
        return name

    def activated(self, x):
        return self.add("activate", [x], function=self.draw.choice(("silu", "sigmoid", "gelu")))

    def convolution(self, x, out, stride, kernel=3):
        made = self.activated(self.add("conv2d", [x], out=out, kernel=kernel, stride=stride, pad=kernel // 2))
        self.width = out
        return made

    def narrower(self, x):
        return self.convolution(x, self.draw.choice((8, 16, 24)), self.draw.choice((1, 2)))

    def residual(self, x):
        inner = self.convolution(x, self.width, 1, self.draw.choice((1, 3)))
        return self.add("add", [x, inner])

    def scaled(self, x):
        """tanh(x p): one node, which keeps no product for its backward."""
        return self.add("elementwise", [x], steps=["multiply x0 p", "tanh s0"], parameter=[self.width],
                        parameter_axis=1)

    def gated(self, x):
        return self.add("multiply", [x, self.add("activate", [self.convolution(x, self.width, 1, 1)],
                                                 function="sigmoid")])

    def write(self, folder):
        graph = {"format": "antichain graph", "version": 1, "model": "drawn", "made_by": "a seed",
                 "inputs": [{"name": "images", "shape": [3, 32, 32], "dtype": "float32"},
                            {"name": "labels", "shape": [], "dtype": "int32"}], "nodes": self.nodes}
        (folder / "graph.json").write_text(json.dumps(graph, indent=1) + "\n")


class NewValue(torch.autograd.Function):
    """Returns `value`, and hands the gradient to `computed`: a forward on other weights than its backward."""

    @staticmethod
    def forward(_, computed, value):
        return value.clone()

    @staticmethod
    def backward(_, gradient):
        return gradient, None


def apply(node, x, weights):
    options = node.get("options", {})
    op = node["op"]
    if op == "conv2d":
        return functional.conv2d(x[0], *weights, stride=options["stride"], padding=options["pad"])
    if op == "linear":
        return functional.linear(x[0], *weights)
    if op == "activate":
        return {"silu": functional.silu, "sigmoid": torch.sigmoid,
                "gelu": functional.gelu}[options["function"]](x[0])
    if op == "average_pool":
        return functional.avg_pool2d(x[0], options["kernel"], options["stride"])
    if op == "softmax_cross_entropy":
        return functional.cross_entropy(x[0], x[1])
    return {"mean": lambda: x[0].mean(options["axes"]), "flatten": lambda: x[0].flatten(1),
            "add": lambda: x[0] + x[1], "multiply": lambda: x[0] * x[1],
            "elementwise": lambda: x[0] * weights[0][:, None, None]}[op]()


def gradients(nodes, images, labels, read, newest):
    """Of the loss, by name: the forward reads `read`; the backward `newest`, where that is not None."""
    leaves = {name: w.detach().clone().requires_grad_() for name, w in (newest or read).items()}
    values = {"images": images, "labels": labels}
    for node in nodes:
        names = [node["name"] + end for end in ("", ".weight", ".bias") if node["name"] + end in leaves]
        x = [values[i] for i in node["inputs"]]
        y = apply(node, x, [leaves[name] for name in names])
        if newest and names:
            with torch.no_grad():
                value = apply(node, x, [read[name] for name in names])
            y = NewValue.apply(y, value)
        if node["op"] == "elementwise":
            y = y.tanh()
        values[node["name"]] = y
    loss = values["loss"]
    return dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values())))), loss.item()


def single(x):
    """A hyperparameter as ours has it: a float32."""
    return float(numpy.float32(x))


def orthogonal(u):
    x = u.T if u.shape[0] > u.shape[1] else u
    x = x / x.norm()
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x.T if u.shape[0] > u.shape[1] else x


class Update:
    """One optimiser's, by docs/optimisers.md, over weights by name."""

    def __init__(self, name, weights, last):
        self.name, self.last, self.count = name, last, 0
        self.slots = {name: [torch.zeros_like(w), torch.zeros_like(w)] for name, w in weights.items()}

    def step(self, weights, of, rate):
        self.count += 1
        return {name: self.one(name, w, of[name], self.slots[name], rate) for name, w in weights.items()}

    def one(self, name, w, g, slots, rate):
        if self.name == "sgd":
            g = g + single(5e-4) * w
            slots[0] = single(0.9) * slots[0] + g
            return w - rate * (g + single(0.9) * slots[0])
        decays = 0.1 if w.dim() > 1 else 0  # matrices and kernels
        if self.name == "muon" and w.dim() > 1 and not name.startswith(self.last + "."):
            rows = w.flatten(1)
            mean = slots[0] = slots[0] + (1 - single(0.95)) * (g - slots[0])
            made = orthogonal((g + single(0.95) * (mean - g)).flatten(1)).view_as(w)
            return w * (1 - rate * decays) - rate * 0.2 * math.sqrt(max(rows.shape)) * made
        beta1, beta2 = 0.9, 0.999
        slots[0] = beta1 * slots[0] + (1 - beta1) * g
        slots[1] = beta2 * slots[1] + (1 - beta2) * g * g
        root = slots[1].sqrt() / math.sqrt(1 - beta2**self.count) + 1e-8
        return w * (1 - rate * decays) - rate / (1 - beta1**self.count) * slots[0] / root


    def ahead(self, weights, method, delays, rate):
        """Predicts weights, by name, as many steps ahead as their delays."""
        return {name: self.one_ahead(name, w, self.slots[name], *PREDICTIONS[method][:2], delays[name], rate)
                for name, w in weights.items()}

    def one_ahead(self, name, w, slots, step_by_step, decaying, steps, rate):
        if self.name == "sgd":
            mu = single(0.9)
            return w - rate * (sum(mu ** (i + 2) for i in range(steps)) if step_by_step else steps) * slots[0]
        decay = 0.1 if decaying and w.dim() > 1 else 0
        muon = self.name == "muon" and w.dim() > 1 and not name.startswith(self.last + ".")

        def direction(i):
            if muon:
                rows = slots[0].flatten(1)
                return 0.2 * math.sqrt(max(rows.shape)) * orthogonal(rows).view_as(w)
            root = slots[1].sqrt() / math.sqrt(1 - 0.999 ** (self.count + i)) + 1e-8
            return 0.9**i * slots[0] / (1 - 0.9 ** (self.count + i)) / root
        if not step_by_step:
            return w * (1 - steps * rate * decay) - steps * rate * direction(0)
        for i in range(steps):
            w = w * (1 - rate * decay) - rate * direction(i + 1)
        return w


def recurrence(run, dtype, shorter=0):
    """Weights after all steps, and the losses. Version n of a weight is what n updates have made of it."""
    versions = [{name: w.to(dtype) for name, w in run["start"].items()}]
    update = Update(run["optimiser"], versions[0], run["last"])
    losses, method = [], run["predict"]
    backwards_read_newest = not PREDICTIONS[method][2] if method else run["policy"] == "stale"
    delays = {name: max(0, delay - shorter) for name, delay in run["delays"].items()}
    read_of = [versions[0]]  # by version: what forwards read of it
    for n, rate in enumerate(run["rates"]):
        here = slice(n * run["batch"], (n + 1) * run["batch"])
        read = {name: read_of[max(0, n - delay)][name] for name, delay in delays.items()}
        newest = versions[-1] if backwards_read_newest else None
        of, loss = gradients(run["nodes"], run["images"][here].to(dtype), run["labels"][here], read, newest)
        losses.append(loss)
        versions.append(update.step(versions[-1], of, rate))
        read_of.append(update.ahead(versions[-1], method, delays, rate) if method else versions[-1])
    return versions[-1], losses


def distance(weights, right, start):
    def length(a, b):
        return math.sqrt(sum((a[name].double() - b[name].double()).square().sum().item() for name in b))
    return length(weights, right) / length(right, start)


def tensors(file):
    found = {}
    with h5py.File(file) as f:
        f.visititems(lambda name, x: found.update({name: torch.from_numpy(numpy.array(x))})
                     if isinstance(x, h5py.Dataset) else None)
    return found


def call(program, *words):
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"FAILED: {' '.join(map(str, words))}\n{done.stderr}")


class Case:
    """The files of a seed: network, weights, batches; and a cut for each policy."""

    def __init__(self, args, seed):
        self.args, self.seed, self.net = args, seed, Drawn(seed)
        self.folder = args.folder / f"seed-{seed}"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.net.write(self.folder)
        self.batch = 8
        self.common = ["--graph", self.folder / "graph.json", "--dataset", "synthetic", "--batch", self.batch,
                       "--seed", seed]
        call(args.program, "export", "--graph", self.folder / "graph.json", "--seed", seed, "--out",
             self.folder / "start.h5")
        with h5py.File(self.folder / "start.h5", "r+") as start:
            for node in self.net.nodes:
                if node["op"] == "elementwise":
                    start[node["name"]][...] = 1.5  # it begins as 0
        call(args.program, "data", "batches", "--dataset", "synthetic", "--batch", self.batch, "--seed", seed,
             "--steps", args.steps, "--out", self.folder / "batches.h5")

    def plan(self, stages, microbatches, policy):
        """Cuts behind nodes that are drawn, with at least a third of all in stage 0. Returns the files of the
        plan and its profile, and each node's stage by name."""
        profile = self.folder / f"profile-{microbatches}.json"
        call(self.args.program, "profile", *self.common[:2], "--batch", self.batch, "--microbatches",
             microbatches, "--seconds", 0.05, "--json", profile)
        file = self.folder / f"plan-{policy}.json"
        words = ["plan", "--profile", profile, "--schedule", policy, "--microbatches", microbatches, "--json",
                 file]
        call(self.args.program, *words, "--stages", 1)
        nodes = json.loads(file.read_text())["stages"][0]["nodes"]
        cuts = sorted(self.net.draw.sample(nodes[len(nodes) // 3:-1], stages - 1))
        call(self.args.program, *words, "--stages", stages, "--method", "handsplit", "--cuts",
             ",".join(map(str, cuts)))
        stage = {}
        for s, of in enumerate(json.loads(file.read_text())["stages"]):
            stage |= dict.fromkeys(of["names"], s)
        return file, profile, stage

    def train(self, name, words):
        folder = self.folder / name
        subprocess.run(["rm", "-rf", folder, f"{folder}-saved"], check=True)
        call(self.args.program, "train", *self.common, "--init", self.folder / "start.h5", "--steps",
             self.args.steps, *words, "--checkpoint", f"{folder}-saved", "--results", folder)
        return json.loads((folder / "summary.json").read_text())["state"]

    def quotient(self, named, optimiser):
        draw = self.net.draw
        predict = named if named in PREDICTIONS else None
        policy = draw.choice(POLICIES) if predict else named
        stages = draw.choice((2, 3, 4))
        microbatches = draw.choice([m for m in (2, 4, 8) if m >= stages]) if policy == "2bw" else 1
        plan, profile, stage = self.plan(stages, microbatches, policy)
        rate = {"sgd": 0.05, "adamw": 3e-3, "muon": 3e-3}[optimiser]
        words = ["--schedule", policy, "--microbatches", microbatches, "--profile", profile, "--optimiser",
                 optimiser, "--lr", rate, "--lr-schedule", "cosine", "--evaluate-every",
                 draw.choice((3, 4, 7, 1000)), "--checkpoint-every", draw.choice((3, 5, 1000))]
        if optimiser == "sgd":
            words += ["--momentum", 0.9, "--weight-decay", 5e-4]
        if optimiser == "adamw":
            words += ["--weight-decay", 0.1]
        if predict:
            words += ["--predict", predict]
        name = f"{named}-{optimiser}"
        cut = [*words, "--plan", plan]
        hashes = {"ranks": self.train(name, [*cut, "--local", stages]),
                  "emulated": self.train(name + "-emulated", [*cut, "--emulate-delays", stages])}
        if policy == "2bw":
            hashes["one rank"] = self.train(name + "-one", words)
        if len(set(hashes.values())) > 1:
            sys.exit(f"FAILED: seed {self.seed}, {name}, {stages} stages: {hashes}")
        lines = map(json.loads, (self.folder / name / "metrics.jsonl").read_text().splitlines())
        steps = [line for line in lines if "rate" in line]
        batches, start = tensors(self.folder / "batches.h5"), tensors(self.folder / "start.h5")
        delay = {s: 1 if policy == "2bw" else stages - 1 - s for s in range(stages)}
        run = {"start": start, "images": batches["images"], "labels": batches["labels"].long(),
               "batch": self.batch, "rates": [single(line["rate"]) for line in steps], "policy": policy,
               "predict": predict, "optimiser": optimiser, "nodes": self.net.nodes, "last": self.net.last,
               "delays": {w: delay[stage[w.split(".")[0]]] for w in start}}
        right, losses = recurrence(run, torch.float64)
        theirs, _ = recurrence(run, torch.float32)
        ours = tensors(self.folder / name / "weights.h5")
        errors = [distance(w, right, start) for w in (ours, theirs)]
        worst = max(abs(line["loss"] / loss - 1) for line, loss in zip(steps, losses))
        other = distance(recurrence(run, torch.float64, shorter=1)[0], right, start)
        print(f"{self.seed:4}  {name:16} {stages} x {microbatches}  {errors[0]:9.2e} {errors[1]:9.2e}"
              f" {errors[0] / errors[1]:6.2f}  {worst:9.1e}  {other:9.1e}", flush=True)
        return errors[0] / errors[1], other / errors[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--program", default="build/antichain")
    parser.add_argument("--only", choices=(*POLICIES, *PREDICTIONS))
    parser.add_argument("--optimiser", choices=OPTIMISERS)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--steps", type=int, default=10)
    args = parser.parse_args()
    torch.set_num_threads(1)
    failed, quotients = [], {}
    print("seed  run              S x M   error of: ours, float32, quotient; of a loss; of a shorter delay")
    for seed in range(1, args.seeds + 1):
        case = Case(args, seed)
        for policy in [args.only] if args.only else (*POLICIES, *PREDICTIONS):
            for optimiser in [args.optimiser] if args.optimiser else OPTIMISERS:
                quotients.setdefault((policy, optimiser), []).append(case.quotient(policy, optimiser))
    for (policy, optimiser), pairs in quotients.items():
        errors, other = zip(*pairs)
        mean, largest, far = statistics.geometric_mean(errors), max(errors), statistics.geometric_mean(other)
        print(f"{policy} {optimiser}: geometric mean {mean:.2f}, largest {largest:.2f}; "
              f"a shorter delay {far:.0f}")
        if mean > MEAN_LIMIT or largest > LIMIT or far < FAR:
            failed.append(f"{policy} {optimiser}")
    if failed:
        sys.exit(f"FAILED: {', '.join(failed)}: errors above {MEAN_LIMIT} or {LIMIT} times float32's, or a "
                 "delay that makes no difference")


if __name__ == "__main__":
    main()
