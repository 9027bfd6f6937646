#!/usr/bin/env python3
"""Compares the times of a training step's parts with estimates, for ResNet-18 and ResNet-50 in bf16.

    tests/gpu/kernels.py PROGRAM [--ncu NCU] [--json FILE] [--models resnet18 resnet50] [--batch 128]

  nodes     by CUDA events (`antichain profile`), beside the larger of: bytes over the memory's rate,
            operations over that of the tensor cores, and what any kernel takes. The rates are --bytes-per-s
            and --flops, which should be measured ones.
  kernels   by ncu where it may read the counters: time, bytes per second and registers of each kernel, the
            longest in sum first
"""
import argparse, csv, io, json, os, sys, tempfile

sys.dont_write_bytecode = True
from diagnosis.runs import Runs, last_line

DEVICE = os.environ.get("DEVICE", "cuda")
LEAST_US = 1.8  # of a kernel
METRICS = {"gpu__time_duration.sum": "ns", "dram__bytes.sum": "bytes", "smsp__issue_active.avg.pct_of_peak_sustained_active": "issue %",
           "launch__registers_per_thread": "registers", "launch__grid_size": "blocks"}


def network(model, batch):
    return ["--device", DEVICE, "--precision", "bf16", "--local", "1", "--model", model, "--batch", str(batch), "--microbatches", "1",
            "--profile-cache", "none"]


def estimate_us(node, of_input, flops_per_s, bytes_per_s):
    """(forward, backward). Each pass moves the input and the output about once; a backward does twice the
    operations, and moves twice."""
    moved = of_input + node["output_bytes"] + node["param_bytes"]
    flops = node["flops"] if node["op"] in ("conv2d", "linear") else 0
    return tuple(max(LEAST_US, n * 1e6 * max(moved / bytes_per_s, flops / flops_per_s)) for n in (1, 2))


def nodes(args, runs, model, folder):
    """Returns rows by type of operator: nodes, measured us, estimated us, and the same of backward."""
    file = os.path.join(folder, "profile.json")
    code, said = runs.run([args.program, "profile", *network(model, args.batch), "--seconds", "2", "--json", file])
    if code != 0:
        print(f"FAILED  profile of {model}: {last_line(said)}", flush=True)
        return None
    with open(file) as text:
        all_nodes = json.load(text)["nodes"]
    bytes_of = {n["id"]: n["output_bytes"] for n in all_nodes}
    rows = {}
    for n in all_nodes:
        if n["role"] != "compute" or not n.get("forward_us"):
            continue
        forward, backward = estimate_us(n, sum(bytes_of.get(i, 0) for i in n["inputs"]), args.flops, args.bytes_per_s)
        row = rows.setdefault(n["op"], [0, 0.0, 0.0, 0.0, 0.0])
        for i, x in enumerate((1, n["forward_us"], forward, n["backward_input_us"] + n["backward_weight_us"], backward)):
            row[i] += x
    print(f"\n{model}, {args.batch} images: us of all nodes of a type, by events, beside the estimate\n"
          f"{'operator':22} {'nodes':>5} {'forward':>9} {'estimate':>9} {'backward':>9} {'estimate':>9}")
    for op, row in sorted(rows.items(), key=lambda item: -item[1][1] - item[1][3]):
        print(f"{op:22} {row[0]:5}" + "".join(f" {x:9.1f}" for x in row[1:]), flush=True)
    return {op: dict(zip(("nodes", "forward_us", "estimated_forward_us", "backward_us", "estimated_backward_us"), row)) for op, row in rows.items()}


def number(text):
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return 0.0


def kernels(args, runs, model):
    """Returns launches, us and GB/s by name, of two steps or so from the fourth on, kernel by kernel."""
    launches = {"resnet18": 260, "resnet50": 650}.get(model, 500)
    code, said = runs.run([args.ncu, "--clock-control", "none", "--cache-control", "none", "--csv", "--print-units", "base", "--metrics", ",".join(METRICS),
                           "--launch-skip", str(4 * launches), "--launch-count", str(launches), args.program, "train", *network(model, args.batch),
                           "--method", "uniform", "--steps", "8", "--dataset", "synthetic"], {"ANTICHAIN_CUDA_GRAPHS": "0"}, most_s=90)
    begin = said.find('"ID"')
    if code != 0 or begin < 0:
        print(f"{model}: ncu tells nothing here: {last_line(said)}", flush=True)
        return None
    found = {}
    for row in csv.DictReader(io.StringIO(said[begin:])):
        if row.get("Metric Name") in METRICS:
            found.setdefault((row["ID"], row["Kernel Name"]), {})[METRICS[row["Metric Name"]]] = number(row["Metric Value"])
    by_name = {}
    for (_, name), m in found.items():
        one = by_name.setdefault(name, {"launches": 0, "us": 0.0, "bytes": 0.0, "registers": m.get("registers", 0), "issue %": 0.0})
        one["launches"] += 1
        one["us"] += m.get("ns", 0) / 1e3
        one["bytes"] += m.get("bytes", 0)
        one["issue %"] = max(one["issue %"], m.get("issue %", 0))
    longest = sorted(by_name.items(), key=lambda item: -item[1]["us"])
    print(f"\n{model}: {len(found)} launches by ncu\n{'us':>9} {'launches':>8} {'GB/s':>6} {'regs':>5}  kernel")
    for name, k in longest[:25]:
        print(f"{k['us']:9.1f} {k['launches']:8} {k['bytes'] / max(k['us'], 1e-9) / 1e3:6.0f} {k['registers']:5.0f}  {name[:110]}", flush=True)
    return dict(longest[:60])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--ncu")
    parser.add_argument("--json")
    parser.add_argument("--models", nargs="+", default=["resnet18", "resnet50"])
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--bytes-per-s", type=float, default=3.9e12)
    parser.add_argument("--flops", type=float, default=450e12)
    args = parser.parse_args()
    runs = Runs(float(os.environ.get("MOST", 180)) - 5)
    runs.until(1)
    code, said = runs.run([args.program, "info", "--model", "resnet20", "--device", DEVICE])
    if code != 0:
        print(f"skipped, needs a CUDA device: {last_line(said)}")
        return 77
    figures, right = {}, True
    with tempfile.TemporaryDirectory() as folder:
        for model in args.models:
            figures[model] = {"nodes": nodes(args, runs, model, folder)}
            right = right and figures[model]["nodes"] is not None
    for model in args.models if args.ncu else []:
        figures[model]["kernels"] = kernels(args, runs, model)
    if not args.ncu:
        print("there is no ncu here: times are those of events alone")
    if args.json:
        with open(args.json, "w") as file:
            json.dump(figures, file, indent=1)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
