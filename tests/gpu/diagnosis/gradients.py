"""Compares the gradients of one batch with the CPU's, node by node: the last node that is wrong is where it
begins."""
import json, os

from diagnosis.runs import last_line, row
from diagnosis.variants import AS_IT_IS, NEAR, OF_ONE


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
