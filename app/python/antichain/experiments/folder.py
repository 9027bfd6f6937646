"""The folder that holds an experiment's results, and the record of how they were made, so that a figure can
be traced to a program and a command, and no folder mixes two experiments:

  OUT/experiment.json   command, version, git revision, libraries, host, settings, what was asked for
  OUT/cells/*.json      finished cells       OUT/plans, OUT/logs, OUT/work, OUT/profiles, OUT/figures
  OUT/report.md, .html
"""

import fcntl
import json
import math
import os
import pathlib
import re
import sys
import time

from antichain.experiments.start import BAD_INPUT, provenance, refusal
from antichain.files import write_whole


UNITS = {"": 1, "b": 1, "s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}  # as framework/units.h has them
for power, letter in enumerate("kmgtp", 1):
    UNITS |= {letter + ending: (1000 if ending == "b" else 1024) ** power for ending in ("", "b", "i", "ib")}


def number(setting):
    """Returns what a setting counts, where it is a number, a size or a time in one unit, else None."""
    parts = re.fullmatch(r"(-?[\d.]+(?:e[-+]?\d+)?) ?([a-z]*)(?:/s)?", str(setting).lower())
    try:
        return float(parts[1]) * UNITS[parts[2]] if parts else None
    except (KeyError, ValueError):
        return None


def same(one, other):
    """Returns whether two settings are equal: 0 and "0", 1.2e10 and "12GB"."""
    counts = number(one), number(other)
    return str(one) == str(other) or (None not in counts and math.isclose(*counts, rel_tol=1e-12))


def own_command():
    return ["python3", "-m", "antichain.experiments", *sys.argv[1:]]


class ResultsFolder:
    def __init__(self, path, experiment, only_look=False):
        """Makes the folder where there is none, and locks it. Throws AntichainError where another run uses
        it, or where it is of another experiment."""
        self.path, self.record = pathlib.Path(path), {}
        try:
            if not only_look:
                self.path.mkdir(parents=True, exist_ok=True)
                self._lock()
        except OSError as problem:
            sentence = f"can't write to the folder {path} ({problem.strerror}): name another by --out"
            raise refusal(sentence, BAD_INPUT) from problem
        record = self.path / "experiment.json"
        if not record.exists():
            return
        try:
            self.record = json.loads(record.read_text())
            kind, _, _ = self.record["experiment"], dict(self.record["settings"]), self.made_with()
        except (OSError, ValueError, KeyError, TypeError) as problem:
            sentence = f"{record} is no record of an experiment: name another folder"
            raise refusal(sentence, BAD_INPUT) from problem
        if kind != experiment:
            raise refusal(f"{record} is not of an experiment called {experiment}: name another folder")

    def _lock(self):
        """One run at a time; the same lock as the program's (framework/files/folder_lock.h)."""
        if os.geteuid() not in (0, self.path.stat().st_uid):
            raise refusal(f"the folder {self.path} belongs to another user: name one of your own", BAD_INPUT)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        self._file = open(os.open(self.path / "lock", flags, 0o644), "r+", errors="replace")
        try:
            self._take_lock()
        except BlockingIOError as problem:
            who = self._file.readline().strip() or "which has just begun"
            sentence = f"the folder {self.path} is in use by another run, {who}"
            raise refusal(f"{sentence}: wait for its end, or name another", BAD_INPUT) from problem
        if not re.fullmatch(r"(process \d+ on .*\n)?", self._file.read(300)):
            sentence = f"{self.path}/lock is no lock of antichain, and would be overwritten"
            raise refusal(f"{sentence}: name another folder", BAD_INPUT)
        self._file.seek(0)
        self._file.truncate()
        self._file.write(f"process {os.getpid()} on {os.uname().nodename}\n")
        self._file.flush()

    def _take_lock(self):
        """Tries for a second: where a run was killed while it started a program, that has the lock, too,
        until it has begun."""
        for _ in range(20):
            try:
                return fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.05)
        return fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def settled(self, defaults, given):
        """Returns the settings: what is given, else what the folder was begun with, else the default. Throws
        AntichainError where the folder has results of another setting, naming it."""
        before = self.record.get("settings", {}) if self.holds_results() else {}
        settings = {}
        for name, default in defaults.items():
            was = begun(name, before.get(name, default), default)
            settings[name] = was if given.get(name) is None else given[name]
            if name in before and not same(settings[name], was):
                raise refusal(
                    f"{self.path}/experiment.json holds results of other settings: {name} was"
                    f" {json.dumps(was)}, and is {json.dumps(settings[name])} now: give another --out, or the"
                    " settings it was begun with"
                )
        return settings

    def holds_results(self):
        """An experiment that ended before its first result may start again with other settings."""
        results = (file for part in ("report.md", "cells/*", "profiles/*") for file in self.path.glob(part))
        return next(results, None) is not None

    def write_record(self, experiment, program, settings, asked):
        record = {"experiment": experiment, "command": own_command(), **provenance(program.facts)}
        self.keep(record | {"settings": settings, "asked": asked})

    def keep(self, record):
        self.record = record
        self.write("experiment.json", json.dumps(record, indent=2) + "\n")

    def made_with(self):
        """Returns the program, its libraries and the host that results were made with, in one line."""
        made = self.record
        place = f"{made['host']} with {made['cores']} cores"
        return f"{made['program']} (revision {made['revision']}), {', '.join(made['libraries'])}; {place}"

    def write(self, name, text):
        write_whole(self.path / name, text.encode())

    def file(self, folder, name):
        """Returns the path of a file in an inner folder, which is made."""
        inner = self.path / folder
        inner.mkdir(exist_ok=True)
        return inner / name


def begun(name, value, default):
    """Returns a setting as it is written today. Records of the program that made experiments itself have -1,
    0 or "" for what was not given, threads for "" as the launcher, and lists."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    if name == "launcher":
        return value or "threads"
    return default if default is None and value in (-1, 0, "") else value
