#!/usr/bin/python3
"""Compares predicted steps with measured ones over a link of a known rate.

    sudo tests/benchmarks/links.py PROGRAM FOLDER [--models resnet18 vgg16] [--mbits 1000 100] [--steps 8]
        [--only steps|cut]

Two ranks run in two network namespaces that a pair of virtual devices joins. `tc tbf` lets each end send at
most so many Mbit/s, and mpirun starts the ranks, which talk over TCP. Each network trains as a pipeline and
as two replicas, and rank 0 profiles the network and the link beforehand, as ever. A line has the step that
`train` predicts, the median of the measured steps without the first, and how far the measured ones spread
(10 % to 90 %). The last part takes the link down while a pipeline trains, and prints after how many seconds
which sentence ended the run. The script needs root, iproute2 and Open MPI. Namespaces and devices have
names of its own and are removed at its end.
"""
import argparse
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time

NAMES = [f"antichain{end}{os.getpid()}" for end in "ab"]
DEVICES = [f"ac{end}{os.getpid() % 10**9}" for end in "ab"]
ADDRESSES = ["10.251.7.1", "10.251.7.2"]
WAYS = {"pipeline": ["--microbatches", 8], "replicas": ["--microbatches", 2, "--replicas", 2]}


def run(*words):
    subprocess.run([*map(str, words)], check=True)


class Link:
    """Two namespaces with a link between them, for as long as the `with` lasts."""

    def __init__(self, folder):
        # mpirun starts the rank of the other end by this agent, which gets a host and a shell's command line.
        # A host name of its own keeps Open MPI from taking both ends for one computer. Each end has a core.
        self.agent = folder / "agent"
        self.agent.write_text(f'#!/bin/sh\nshift\nexec ip netns exec {NAMES[1]} taskset -c 1 unshare '
                              f'--uts sh -c "hostname {NAMES[1]}; $*"\n')
        self.agent.chmod(0o755)

    def __enter__(self):
        for name in NAMES:
            run("ip", "netns", "add", name)
        run("ip", "link", "add", DEVICES[0], "netns", NAMES[0], "type", "veth", "peer", DEVICES[1], "netns", NAMES[1])
        for name, device, address in zip(NAMES, DEVICES, ADDRESSES):
            run("ip", "-n", name, "address", "add", f"{address}/24", "dev", device)
            run("ip", "-n", name, "link", "set", device, "up")
            run("ip", "-n", name, "link", "set", "lo", "up")
        return self

    def __exit__(self, *_):
        for name in NAMES:
            left = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True).stdout.split()
            for process in map(int, left):
                os.kill(process, signal.SIGKILL)
            subprocess.run(["ip", "netns", "delete", name])

    def shape(self, mbits):
        for name, device in zip(NAMES, DEVICES):
            run("tc", "-n", name, "qdisc", "replace", "dev", device, "root", "tbf", "rate", f"{mbits}mbit",
                "burst", mbits * 128, "limit", 1 << 20)  # a millisecond's bytes at once, a MiB waiting

    def cut(self):
        run("ip", "-n", NAMES[1], "link", "set", DEVICES[1], "down")

    def command(self, *words):
        """Returns the command that runs these words on two ranks, one at each end."""
        network = ADDRESSES[0].rsplit(".", 1)[0] + ".0/24"
        return [*map(str, ["ip", "netns", "exec", NAMES[0], "taskset", "-c", 0, "mpirun",
                           "--allow-run-as-root", "--bind-to", "none", "-n", 2, "-H",
                           ",".join(f"{address}:1" for address in ADDRESSES), "--mca", "plm_rsh_agent", self.agent,
                           "--mca", "oob_tcp_if_include", network, "--mca", "btl_tcp_if_include", network, "--mca",
                           "pml", "ob1", "--mca", "btl", "self,tcp", *words])]


def train_words(args, model, way, *more):
    return [args.program, "train", "--model", model, "--dataset", "synthetic", "--batch", args.batch, *WAYS[way],
            "--lr", 0.001, *more]


def measured(args, link, model, way):
    """Returns the predicted step and the measured ones without the first, in seconds."""
    metrics = args.folder / "metrics.json"
    ran = subprocess.run(link.command(*train_words(args, model, way, "--steps", args.steps, "--metrics", metrics)),
                         capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"{' '.join(ran.args)} ended with {ran.returncode}:\n{ran.stdout[-2000:]}{ran.stderr[-3000:]}")
    *steps, result = map(json.loads, metrics.read_text().splitlines())
    return result["predicted_step_s"], sorted(step["seconds"] for step in steps if "step" in step)[1:]


def compare_steps(args, link):
    print("| link | network | way | predicted s | measured s | 10 % to 90 % | measured / predicted |")
    print("|---|---|---|---|---|---|---|")
    for mbits in args.mbits:
        link.shape(mbits)
        for model in args.models:
            found = {}
            for way in WAYS:
                predicted, steps = measured(args, link, model, way)
                median = statistics.median(steps)
                found[way] = predicted, median
                low, high = (steps[round(share * (len(steps) - 1))] for share in (0.1, 0.9))
                print(f"| {mbits} Mbit/s | {model} | {way} | {predicted:.3f} | {median:.3f} | {low:.3f} to {high:.3f} | "
                      f"{median / predicted:.3f} |", flush=True)
            fastest = [min(found, key=lambda way: found[way][i]) for i in (0, 1)]
            print(f"{model} at {mbits} Mbit/s: predicted to be faster: {fastest[0]}; was faster: {fastest[1]}")


def cut_cable(args, link):
    link.shape(1000)
    metrics = args.folder / "cut.json"
    metrics.unlink(missing_ok=True)
    words = train_words(args, args.models[0], "pipeline", "--steps", 1000, "--metrics", metrics, "--watchdog", args.watchdog)
    job = subprocess.Popen(link.command(*words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while not (metrics.exists() and metrics.read_text().count("\n") > 3):
        if job.poll() is not None:
            sys.exit(job.communicate()[0])
        time.sleep(0.2)
    link.cut()
    begin = time.monotonic()
    for line in job.stdout:
        if line.startswith("antichain: "):
            print(f"The link was taken down. After {time.monotonic() - begin:.1f} s rank 0 said:\n{line}", end="")
            break
    job.kill()  # mpirun itself would wait for its daemon at the other end


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("folder", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--models", nargs="*", default=["resnet18", "vgg16"])
    parser.add_argument("--mbits", nargs="*", type=int, default=[1000, 100])
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--watchdog", default=10, help="the watchdog's seconds where the link is cut")
    parser.add_argument("--only", choices=["steps", "cut"])
    args = parser.parse_args()
    if os.geteuid() != 0:
        parser.error("namespaces take root")
    args.folder.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # through the end of the `with`
    with Link(args.folder) as link:
        if args.only != "cut":
            compare_steps(args, link)
        if args.only != "steps":
            cut_cable(args, link)


if __name__ == "__main__":
    main()
