"""Writes a published instance as what the program reads: profile.json, cluster.json, a profile for each other
kind of device, and plan.json where it has one."""

import argparse
import json
import pathlib
import sys

from antichain.error import AntichainError
from antichain.files import json_of, write_whole
from antichain.instances import sailor
from antichain.instances.dnn_partitioning import Workload


def text_of(content):
    lists = {key: content[key] for key in ("sent", "nodes", "stages") if key in content}
    return json_of({key: value for key, value in content.items() if key not in lists}, **lists)


def workload(options):
    data = json.loads(options.file.read_text())
    return Workload(data, options.file.stem).files(options.accelerators, options.cpus)


def run(options):
    return sailor.Run(options.data, options.file).files()


def convert(options):
    try:
        files = options.files(options)
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise AntichainError(f"can't read {options.file} as {options.what}: {problem!r}") from problem
    options.out.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_whole(options.out / name, text_of(content).encode())


def main():
    parser = argparse.ArgumentParser(prog="python3 -m antichain.instances", description=__doc__)
    commands = parser.add_subparsers(required=True)

    def add(name, files, what):
        command = commands.add_parser(name, help=what)
        command.set_defaults(files=files, what=what)
        command.add_argument("file", type=pathlib.Path)
        command.add_argument("--out", type=pathlib.Path, required=True, help="folder for what is written")
        return command

    command = add("dnn-partitioning", workload, "a throughput workload of msr-fiddle/dnn-partitioning")
    command.add_argument("--accelerators", type=int, help="as many [as the file says]")
    command.add_argument("--cpus", type=int, help="as many [as the file says]")
    command = add("sailor", run, "a measured run of eth-easl/sailor")
    command.add_argument("--data", type=pathlib.Path, required=True, help="the folder with its profiles")
    try:
        convert(parser.parse_args())
    except AntichainError as problem:
        sys.exit(f"antichain.instances: {problem}")


if __name__ == "__main__":
    main()
