"""Runs compute-sanitizer over a training of three steps."""
import re

from diagnosis.runs import last_line


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
