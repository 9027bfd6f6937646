#!/usr/bin/env python3
"""Prints one JSON object: all figures that the parts of tests/gpu.sh have written, by part, and what the
machine is. With BEFORE, which an earlier command has printed, it writes the figures that RESULTS lacks there.

    tests/gpu/figures.py RESULTS [BEFORE]
"""
import glob, json, os, subprocess, sys


def machine():
    query = "name,driver_version,memory.total,clocks.max.sm,clocks.max.mem"
    try:
        said = subprocess.run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"], capture_output=True, text=True)
        return said.stdout.splitlines()
    except OSError:
        return []


if len(sys.argv) > 2:
    with open(sys.argv[2]) as text:
        for part, figures in json.load(text).items():
            file = os.path.join(sys.argv[1], f"{part}.json")
            if part not in ("gpus", "cores") and not os.path.exists(file):
                with open(file, "w") as kept:
                    json.dump(figures, kept, indent=1)
    sys.exit()
figures = {"gpus": machine(), "cores": os.cpu_count()}
for file in sorted(glob.glob(os.path.join(sys.argv[1], "*.json"))):
    try:
        with open(file) as text:
            figures[os.path.basename(file)[:-5]] = json.load(text)
    except ValueError:
        continue  # it is just being written
print(json.dumps(figures, indent=1))
