#!/usr/bin/env python3
"""Prints the names of the schedules by which a program trains to the bits of one rank, one a line.

    tests/scripts/schedules.py build/antichain
"""
import json, subprocess, sys


def schedules_of(program):
    listed = subprocess.run([program, "info", "--quiet", "--json", "-"], stdout=subprocess.PIPE, check=True)
    return [s["schedule"] for s in json.loads(listed.stdout)["schedules"] if s["trains"] and not s["asynchronous"]]


if __name__ == "__main__":
    print("\n".join(schedules_of(sys.argv[1])))
