"""One side of a comparison: a process on one pinned core that answers each line it reads with numbers."""
import os, subprocess, sys


class Side:
    def __init__(self, command, core):
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.child = subprocess.Popen(["taskset", "-c", str(core), *command], env=environment, text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def answer(self, line):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()
        answer = self.child.stdout.readline()
        if not answer:
            sys.exit(f"{self.child.args[3]} ended with {self.child.wait()} at: {line}")
        return [float(number) for number in answer.split()]
