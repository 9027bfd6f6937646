#!/usr/bin/env -S python3 -I -S
"""Trains like `antichain` as far as tests/gpu/diagnose.py asks, with a part that is at fault (STUB_FAULT)."""
import json, os, random, sys

words = sys.argv[1:]
fault, processes = os.environ.get("STUB_FAULT", ""), int(os.environ.get("STUB_PROCESSES", "1"))
loops = os.environ.get("ANTICHAIN_CUDA_LOOPS", "")


def option(name, otherwise=""):
    return words[words.index(name) + 1] if name in words else otherwise


def write(name, text):
    if option(name):
        with open(option(name), "w") as file:
            file.write(text)


on_gpu, host = option("--device") == "cuda", option("--transport") == "mpi"
ranks = processes * int(option("--local", "1"))
graphs = os.environ.get("ANTICHAIN_CUDA_GRAPHS") != "0"
trains = words[0] == "train"
wrong = on_gpu and {
    "": False, "kernels": True, "once": False, "twice": False,
    "graphs": trains and graphs, "crash": trains and graphs,
    "images": trains and option("--augment") != "host",
    "engine": loops not in ("convolutions", "all") and os.environ.get("ANTICHAIN_CUDA_SKIP") != "62",
    "cudnn": loops not in ("convolutions", "all"),
    "unrecorded": False,
    "cublas": loops not in ("products", "all"),
    "streams": trains and os.environ.get("CUDA_LAUNCH_BLOCKING") != "1",
    "parts": option("--schedule") == "zb-v" or option("--epochs") == "3",
    "nccl": processes > 1 and not host, "staged": ranks > 1 and (host or processes == 1),
}[fault]
if words[0] == "info" and os.environ.get("STUB_NO_DEVICE"):
    sys.exit("antichain: there is no device 'cuda'")
if wrong and fault == "crash":
    sys.exit("antichain: cudaGraphLaunch(…) failed: an illegal memory access was encountered")
if words[0] == "info":
    names = ("1f1b", "zb-v", "forward-only")
    write("--json", json.dumps({"schedules": [{"schedule": n, "trains": n != "forward-only"} for n in names]}))
if fault == "unrecorded" and trains and graphs:
    print("antichain: work on the device can't be recorded", file=sys.stderr)
if trains and os.environ.get("ANTICHAIN_CUDA_PLANS"):
    for engine in (67, 62):
        print(f"antichain: plan forward bf16 x 1 weights 1 stride 1 1 pad 0 0 is engine {engine}, notes 0", file=sys.stderr)
if trains:
    losses = [2.3, 2.2, 2.1 * (1.5 if wrong else 1)]
    write("--metrics", "".join(json.dumps({"step": i + 1, "loss": loss, "accuracy": 0.9, "images_per_s": 100}) + "\n" for i, loss in enumerate(losses)))
    differs = f"{random.random():.6f}" if on_gpu and fault == "twice" else ""
    state = f"{differs}{loops}{wrong}".encode().hex()[:16]
    write("--json", json.dumps({"state": state, "final_test_accuracy": 0.7 if wrong else 0.76}))
if words[0] == "gradients":
    norms = [("conv1.weight", 1.0), ("layer1.weight", 2.0), ("fc.weight", 3.0)]
    broken = ("conv1.weight", "layer1.weight") if wrong else ()
    write("--json", json.dumps({"loss": 2.3, "gradients": [{"name": n, "norm": x * (2 if n in broken else 1), "max": x} for n, x in norms]}))
if words[0] == "profile":
    write("--json", json.dumps({"device": "NVIDIA H200, stubs", "asked": words}, indent=2))
