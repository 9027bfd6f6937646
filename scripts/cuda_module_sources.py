#!/usr/bin/env python3
"""Prints what the CUDA module of a build is compiled from: the sources in the repository, relative to it, one
a line. CMake compiles several of them as one, so its commands name generated files, whose includes name the
sources.

    scripts/cuda_module_sources.py BUILD
"""
import json, os, re, sys


def text_of(path):
    with open(path) as file:
        return file.read()


def commands_of(build):
    commands = json.loads(text_of(f"{build}/compile_commands.json"))
    return [c for c in commands if "antichain_cuda.dir" in c["command"]]


def sources_of(build):
    root = re.search(r"CMAKE_HOME_DIRECTORY:INTERNAL=(.*)", text_of(f"{build}/CMakeCache.txt")).group(1)
    sources = []
    for file in (os.path.join(c["directory"], c["file"]) for c in commands_of(build)):
        is_generated = not os.path.relpath(file, build).startswith("..")
        sources += re.findall(r'^#include "(.*)"', text_of(file), re.M) if is_generated else [file]
    return sorted(os.path.relpath(source, root) for source in sources)


if __name__ == "__main__":
    print("\n".join(sources_of(sys.argv[1])))
