"""Runs a small training in every variant, compares its losses with the CPU's and its weights by their bits,
and says what follows from both."""
import json, os, re

from diagnosis.engines import engines
from diagnosis.runs import last_line, row
from diagnosis.variants import AS_IT_IS, NEAR, OF_ONE, OF_RANKS

TRAIN = "--dataset synthetic --batch 16 --microbatches 2 --steps 5 --lr 0.01 --lr-schedule constant".split()


class Trainings:
    def __init__(self, args, runs, folder):
        self.args, self.runs, self.folder, self.verdicts = args, runs, folder, []
        self.result, self.metrics = (os.path.join(folder, name) for name in ("result", "metrics"))

    def run(self, network, variant, device, environment=None):
        """(exit code, what it said)"""
        model, precision = network
        launcher = [self.args.mpirun, "-n", str(variant.processes), "--oversubscribe", "--bind-to", "none"] if variant.processes else []
        local = [] if variant.processes or "--local" in variant.options else ["--local", "1"]
        return self.runs.run(launcher + [self.args.program, "train", "--device", device, "--model", model, "--precision", precision,
                                         *TRAIN, *local, *variant.options, "--profile-cache", os.path.join(self.folder, "profiles"), "--json", self.result,
                                         "--metrics", self.metrics],
                             {**variant.environment, **(environment or {})})

    def train(self, network, variant, device):
        """(losses, state, why not)"""
        for file in (self.result, self.metrics):
            if os.path.exists(file):
                os.remove(file)
        code, said = self.run(network, variant, device)
        if code != 0:
            return None, None, None if code is None else f"exit code {code}: {last_line(said)}"
        with open(self.metrics) as lines, open(self.result) as whole:
            steps = [json.loads(line) for line in lines]
            said_once = re.search(r".*can't be recorded.*", said)
            return [s["loss"] for s in steps if "loss" in s], json.load(whole)["state"], said_once.group(0).strip()[:160] if said_once else ""

    def judge(self, network, variant, right, first=None, bits_count=True):
        """Prints a row. (True: right, False: wrong, None: not run; the state)"""
        losses, state, why = self.train(network, variant, "cuda")
        name = " ".join(network)
        if losses is None:
            row(name, variant.name, "not run" if why is None else "FAILED", "-", "-", why or "no time left")
            return (None if why is None else False), None
        near = len(losses) == len(right) and all(abs(a - b) <= NEAR[network[1]] * abs(b) for a, b in zip(losses, right))
        same = "-" if first is None or not variant.same_bits else "same" if state == first else "OTHER"
        details = why if near else (why + " losses " + " ".join(f"{x:.5g}" for x in losses) + " for " + " ".join(f"{x:.5g}" for x in right))
        row(name, variant.name, "ran", "right" if near else "WRONG", f"{state} {same}", details)
        return near and (same != "OTHER" or not bits_count), state

    def network(self, network):
        name = " ".join(network)
        right, _, why = self.train((network[0], "float32"), AS_IT_IS, "cpu")
        if right is None:
            return self.verdicts.append(f"{name}: nothing to compare with, the CPU's run says: {why or 'no time left'}")
        as_it_is, first = self.judge(network, AS_IT_IS, right)
        variants = []
        if as_it_is is not None or self.args.all:
            variants += [v for v in OF_ONE if v.same_bits or not as_it_is or self.args.all]
        if as_it_is or self.args.all:
            variants += [v for v in OF_RANKS if not v.processes or self.args.mpirun]
        # The bits of a run that is wrong are no measure.
        found = {v.name: self.judge(network, v, right, first, bits_count=as_it_is)[0] for v in variants}
        self.verdicts += verdict(name, as_it_is, found)
        if as_it_is is False and found.get("without cuDNN"):
            self.verdicts += engines(self, network, right)

    def all(self):
        row("network", "variant", "run", "losses", "weights", "")
        for network in self.args.networks:
            self.network(network)


def verdict(name, as_it_is, found):
    if as_it_is is None:
        return [f"{name}: not run"]
    if not as_it_is:
        blamed = [v for v in OF_ONE[1:] if found.get(v.name)]
        single = [v for v in blamed if v.name != "all of these"]
        if found.get("again"):
            return [f"{name}: wrong once and right again: {OF_ONE[0].blames}"]
        if blamed:
            return [f"{name}: right {v.name if v.name != 'all of these' else 'only with all of these'}: look at {v.blames}" for v in single or blamed]
        return [f"{name}: wrong with every part left out: our own kernels or memory; see gradients and sanitizer"]
    said = []
    if found.get("again") is False:
        said.append(f"{name}: not the same again: {OF_ONE[0].blames}")
    threads, host, processes = OF_RANKS
    for v in threads, host:
        if found.get(v.name) is False:
            said.append(f"{name}: right on one rank, wrong as {v.name}: look at {v.blames}")
    if found.get(processes.name) is False and found.get(host.name):
        said.append(f"{name}: right on one rank, wrong as {processes.name}, right through host memory: look at {processes.blames}")
    for v in OF_ONE[1:]:
        if found.get(v.name) is False:
            said.append(f"{name}: wrong, or of other bits, {v.name}: look at {v.blames}")
    return said or [f"{name}: right"]
