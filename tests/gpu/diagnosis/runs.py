"""Runs commands within a time, returns what they say, and prints rows of a table."""
import os, signal, subprocess, time


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
