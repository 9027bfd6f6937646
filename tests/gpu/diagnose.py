#!/usr/bin/env python3
"""Which part is at fault where training on a GPU goes wrong: a small one is run as it is, and with one part at a time left out.

    tests/gpu/diagnose.py PROGRAM [--mpirun MPIRUN] [--sanitizer COMPUTE_SANITIZER] [--limit SECONDS] [--all]
                          [--networks resnet20:bf16 …] [--tests TEST_GPU TEST_GPU_TRANSPORT --logs FOLDER]

  trainings   losses beside the CPU's, final weights beside those of the run as it is, whose bits most variants must have;
              where a network is right as it is, only those with the same bits are run (--all: every one)
  gradients   of one batch in float32, node by node beside the CPU's: the last node that is wrong is where it begins
  tests       those that the logs name as failed, each in a process of its own, as it is and with parts left out
  sanitizer   compute-sanitizer over a training of three steps

The last lines say what follows. Exit code 0 where nothing is wrong, 77 where there is no device.
"""
import argparse, glob, json, os, re, signal, subprocess, sys, tempfile, time

TRAIN = "--dataset synthetic --batch 16 --microbatches 2 --steps 5 --lr 0.01 --lr-schedule constant".split()
# Batch norm with add; dropout and linear layers; bias behind convolutions and concatenation. In the order in which they tell something new.
NETWORKS = [("resnet20", "float32"), ("vgg16", "bf16"), ("squeezenet1_0", "float32"), ("resnet20", "bf16"), ("vgg16", "float32"),
            ("squeezenet1_0", "bf16")]
# How far a loss may be from the CPU's in float32, relative to it. On the CPU itself, bf16 is 0.6 % off after five steps.
NEAR = {"float32": 1e-3, "bf16": 2e-2}
SAFE = {"ANTICHAIN_CUDA_GRAPHS": "0", "ANTICHAIN_CUDA_LOOPS": "all", "CUDA_LAUNCH_BLOCKING": "1"}


class Variant:
    """One way to run, and what is to be looked at where it alone is right."""

    def __init__(self, name, environment=None, options=(), processes=0, same_bits=True, blames=""):
        self.name, self.environment, self.options = name, environment or {}, list(options)
        self.processes, self.same_bits, self.blames = processes, same_bits, blames


AS_IT_IS = Variant("as it is")
OF_ONE = [
    Variant("again", blames="something differs from run to run: a race, or an engine that is not deterministic"),
    Variant("without graphs", {"ANTICHAIN_CUDA_GRAPHS": "0"}, blames="recorded steps (pipeline/cuda/recordings.cpp)"),
    Variant("images by the host", options=["--augment", "host"], blames="images made on the device (data/cuda/make_images.cu)"),
    Variant("without cuDNN", {"ANTICHAIN_CUDA_LOOPS": "convolutions"}, same_bits=False,
            blames="cuDNN's convolutions (layers/cuda/cudnn_convolution.cpp; ANTICHAIN_CUDA_PLANS=1 names its engines)"),
    Variant("without cuBLASLt", {"ANTICHAIN_CUDA_LOOPS": "products"}, same_bits=False,
            blames="cuBLASLt's products (layers/cuda/cublas_gemm.cpp)"),
    Variant("one kernel at a time", {"ANTICHAIN_CUDA_GRAPHS": "0", "CUDA_LAUNCH_BLOCKING": "1"},
            blames="something that does not wait for what it needs: streams and events"),
    Variant("all of these", SAFE, ["--augment", "host"], same_bits=False, blames="more than one of these parts"),
]
OF_RANKS = [
    Variant("2 threads", options=["--local", "2", "--method", "uniform"]),
    Variant("2 threads, host memory", options=["--local", "2", "--method", "uniform", "--transport", "mpi"],
            blames="copies from GPU to GPU (pipeline/cuda/peer_stream.cpp)"),
    Variant("2 processes", options=["--method", "uniform"], processes=2),
    Variant("2 processes, host memory", options=["--method", "uniform", "--transport", "mpi"], processes=2,
            blames="copies from GPU to GPU by CUDA IPC (pipeline/cuda/ipc.cpp, peer_stream.cpp)"),
]


class Runs:
    """Runs commands for as long as there is time."""

    def __init__(self, limit_s):
        self.begin, self.limit_s, self.end = time.monotonic(), limit_s, 0

    def until(self, share):
        """What comes has the time up to that share of all."""
        self.end = self.begin + share * self.limit_s

    def left_s(self):
        return self.end - time.monotonic()

    def run(self, command, environment=None, most_s=60):
        """(exit code, what it said); code None where there was no time."""
        most_s = min(most_s, self.left_s())
        if most_s < 5:
            return None, "no time left"
        child = subprocess.Popen(command, env={**os.environ, **(environment or {})}, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
        try:
            said = child.communicate(timeout=most_s)[0]
            return child.returncode, said
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            return 124, child.communicate()[0] + f"\nstopped after {most_s:.0f} s"


def last_line(said):
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("antichain: ") or "rror" in line]
    return (errors or lines or ["no word"])[-1][:160]


def row(*columns):
    print("  ".join(f"{text:{width}}" for text, width in zip(columns, (22, 26, 9, 9, 18, 0))).rstrip(), flush=True)


class Trainings:
    def __init__(self, args, runs, folder):
        self.args, self.runs, self.folder, self.verdicts = args, runs, folder, []

    def train(self, network, variant, device):
        """(losses, state, why not)"""
        model, precision = network
        result, metrics = (os.path.join(self.folder, name) for name in ("result", "metrics"))
        for file in (result, metrics):
            if os.path.exists(file):
                os.remove(file)
        launcher = [self.args.mpirun, "-n", str(variant.processes), "--oversubscribe", "--bind-to", "none"] if variant.processes else []
        local = [] if variant.processes or "--local" in variant.options else ["--local", "1"]
        code, said = self.runs.run(launcher + [self.args.program, "train", "--device", device, "--model", model, "--precision", precision,
                                               *TRAIN, *local, *variant.options, "--profile-cache", os.path.join(self.folder, "profiles"), "--json", result, "--metrics", metrics],
                                   variant.environment)
        if code != 0:
            return None, None, None if code is None else f"exit code {code}: {last_line(said)}"
        with open(metrics) as lines, open(result) as whole:
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
    for way, host in ((OF_RANKS[0], OF_RANKS[1]), (OF_RANKS[2], OF_RANKS[3])):
        if found.get(way.name) is False:
            said.append(f"{name}: right on one rank, wrong as {way.name}" +
                        (f", right through host memory: look at {host.blames}" if found.get(host.name) else
                         ", through host memory as well: look at the pipeline's device side (pipeline/runner_device.cpp, copy_stream.cpp)"))
        elif found.get(host.name) is False:
            said.append(f"{name}: wrong as {host.name}: look at copies to and from host memory (pipeline/staged_transport.cpp)")
    for v in OF_ONE[1:]:
        if found.get(v.name) is False:
            said.append(f"{name}: wrong, or of other bits, {v.name}: look at {v.blames}")
    return said or [f"{name}: right"]


def gradients(args, runs, folder):
    """One batch's gradients, node by node."""
    said = []
    row("network", "variant", "run", "losses", "gradients", "")
    for model in dict.fromkeys(model for model, _ in args.networks):
        weights, batch = (os.path.join(folder, f"{model}.{what}.h5") for what in ("weights", "batch"))
        prepared = [runs.run([args.program, "export", "--model", model, "--out", weights]),
                    runs.run([args.program, "data", "batches", "--dataset", "synthetic", "--batch", "8", "--out", batch])]
        if any(code != 0 for code, _ in prepared):
            said.append(f"{model}: no gradients to compare: {[last_line(text) for code, text in prepared if code != 0][0]}")
            continue

        def of(device, environment):
            file = os.path.join(folder, "gradients.json")
            code, text = runs.run([args.program, "gradients", "--model", model, "--weights", weights, "--images", batch, "--device",
                                   device, "--json", file], environment)
            if code != 0:
                return None, code, last_line(text)
            with open(file) as numbers:
                return json.load(numbers), 0, ""

        right, code, why = of("cpu", {})
        if not right:
            said.append(f"{model}: no gradients to compare: {why}")
            continue
        largest = max(g["norm"] for g in right["gradients"])
        for variant in [AS_IT_IS] + [v for v in OF_ONE if v.name in ("without cuDNN", "without cuBLASLt")]:
            ours, code, why = of("cuda", variant.environment)
            if not ours:
                row(model, variant.name, "not run" if code is None else "FAILED", "-", "-", why)
                said += [] if code is None else [f"{model}: gradients {variant.name}: {why}"]
                continue
            wrong = [b["name"] for a, b in zip(ours["gradients"], right["gradients"]) if not close(a, b, largest)]
            loss = abs(ours["loss"] - right["loss"]) <= NEAR["float32"] * abs(right["loss"])
            row(model, variant.name, "ran", "right" if loss else "WRONG", f"{len(wrong)} wrong", " ".join(reversed(wrong[-4:])))
            if not loss:
                said.append(f"{model}: {variant.name}, the loss of one batch is wrong, so forward is")
            elif wrong:
                said.append(f"{model}: {variant.name}, backward is right down to the node behind {wrong[-1]}")
            if loss and not wrong and variant is AS_IT_IS:
                break
    return said


def close(a, b, largest):
    scale = max(b["norm"], 1e-3 * largest)
    return abs(a["norm"] - b["norm"]) <= 2e-3 * scale and abs(a["max"] - b["max"]) <= 1e-2 * scale  # not so of NaN


def failed_tests(folder):
    """Test: log, of those that failed or did not end. What failed first in each log tells most, so these come first."""
    queues = []
    for log in sorted(glob.glob(os.path.join(folder, "*.log"))):
        failed, running = [], None
        with open(log, errors="replace") as lines:
            for line in lines:
                if match := re.match(r"\[( RUN      |       OK |  FAILED  |  SKIPPED )\] (\w\S*\.[^\s,]+)", line):
                    what, test = match.groups()
                    running = test if "RUN" in what else None
                    if "FAILED" in what and test not in failed:
                        failed.append(test)
        failed += [running] if running and running not in failed else []
        queues.append([(test, os.path.basename(log)) for test in failed])
    found = {}
    for place in range(max(map(len, queues), default=0)):
        for queue in queues:
            if place < len(queue):
                found.setdefault(*queue[place])
    return found


def tests_alone(args, runs):
    said = []
    found = failed_tests(args.logs) if args.logs else {}
    if not found:
        return said
    print(f"\n{len(found)} failed tests in the logs; the first {min(len(found), 8)}, each alone (an error that breaks the device fails all behind it)")
    row("test", "variant", "result", "", "", "")
    variants = [AS_IT_IS, Variant("without graphs", {"ANTICHAIN_CUDA_GRAPHS": "0"}), Variant("own loops", {"ANTICHAIN_CUDA_LOOPS": "all"}),
                Variant("one kernel at a time", {"CUDA_LAUNCH_BLOCKING": "1", "ANTICHAIN_CUDA_GRAPHS": "0"})]
    for test, log in list(found.items())[:8]:
        results = {}
        for v in variants:
            program = args.tests[1] if re.match("Gpu", test) and len(args.tests) > 1 else args.tests[0]
            code, text = runs.run([program, "--gtest_brief=1", f"--gtest_filter={test}"], v.environment)
            results[v.name] = code
            failure = re.search(r"Failure\n(.*)", text)
            row("", v.name, "not run" if code is None else "right" if code == 0 else f"code {code}", "", "",
                test if code == 0 else (failure.group(1).strip()[:120] if failure else last_line(text)))
            if code == 0 and v is AS_IT_IS:
                break
        if results.get("as it is") == 0:
            said.append(f"{test}: right alone, so what ran before it in {log} is at fault")
        else:
            said += [f"{test}: right with {name}" for name, code in results.items() if code == 0]
    return said


def sanitizer(args, runs):
    if not args.sanitizer:
        print("\ncompute-sanitizer is not here")
        return []
    said = []
    network = ["train", "--device", "cuda", "--local", "1", "--model", "resnet20", "--dataset", "synthetic", "--batch", "4", "--microbatches", "2",
               "--steps", "3", "--profile-cache", "none", "--method", "uniform"]
    print()
    for tool, environment in (("memcheck", {}), ("racecheck", {"ANTICHAIN_CUDA_GRAPHS": "0", "ANTICHAIN_CUDA_LOOPS": "all"}),
                              ("synccheck", {"ANTICHAIN_CUDA_GRAPHS": "0", "ANTICHAIN_CUDA_LOOPS": "all"})):
        code, text = runs.run([args.sanitizer, "--tool", tool, "--error-exitcode", "9", "--target-processes", "all", args.program] + network,
                              environment, most_s=90)
        lines = [line for line in text.splitlines() if line.startswith("=========")]
        print(f"compute-sanitizer {tool}: {'not run' if code is None else f'exit code {code}'}; {lines[-1] if lines else last_line(text)}", flush=True)
        if code == 9:
            print("\n".join(lines[:40]), flush=True)
            said.append(f"compute-sanitizer {tool} finds: " + next((l.strip("= ") for l in lines if re.search("Invalid|Misaligned|hazard|Barrier|rror", l)), ""))
    return said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--mpirun")
    parser.add_argument("--sanitizer")
    parser.add_argument("--tests", nargs="+", default=[])
    parser.add_argument("--logs")
    parser.add_argument("--limit", type=float, default=float(os.environ.get("MOST", 310)) - 10, help="seconds")
    parser.add_argument("--networks", nargs="+", default=NETWORKS, metavar="MODEL:PRECISION", type=lambda text: tuple(text.split(":")))
    parser.add_argument("--all", action="store_true")
    args = parser.parse_args()
    runs = Runs(args.limit)
    runs.until(0.5)
    code, said = runs.run([args.program, "info", "--model", "resnet20", "--device", "cuda"])
    if code != 0:
        print(f"skipped, needs a CUDA device: {last_line(said)}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        trainings = Trainings(args, runs, folder)
        trainings.all()
        wrong = [v for v in trainings.verdicts if not v.endswith(": right")]
        if wrong or args.all:
            print()
            runs.until(0.65)
            wrong += gradients(args, runs, folder)
        if args.tests:
            runs.until(0.85)
            wrong += tests_alone(args, runs)
        if wrong or args.all:
            runs.until(1)
            wrong += sanitizer(args, runs)
    print("\nwhat follows")
    for line in [v for v in trainings.verdicts if v.endswith(": right")] + wrong:
        print(f"  {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
