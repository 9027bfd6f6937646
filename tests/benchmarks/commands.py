"""Benchmarks run commands."""
import subprocess
import sys


def call(*words, **options):
    """Returns what the command prints. Where it fails, the benchmark ends with what it says."""
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout
