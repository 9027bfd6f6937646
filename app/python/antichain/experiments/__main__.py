"""The command line of the experiments."""

import argparse
import difflib
import json
import os
import pathlib
import shutil
import sys
import time

from antichain.experiments import cells as of
from antichain.experiments import table1
from antichain.experiments.document import counted
from antichain.experiments.folder import ResultsFolder
from antichain.experiments.report import Report, starved_cells
from antichain.experiments.start import (
    BAD_INPUT,
    FAILED,
    USAGE,
    AntichainError,
    Children,
    Program,
    refusal,
    refuse_several_processes,
)
from antichain.experiments.study import COMPUTING, LINK, REHEARSING, STEP, Study, profile_in, words_of

MOST_RANKS = 1024
# The settings on which a cell's figures depend: name, default, help. The program checks what they say.
SETTINGS = (
    ("profiles", None, "a folder with MODEL.txt (PipeDream's) or MODEL.json of every model [measured here]"),
    ("microbatches", 8, "of a step"),
    ("microbatch", 8, "samples in one, of profiles measured here"),
    ("schedule", "1f1b", "as for antichain plan"),
    ("chunks", None, "stages a rank, as for antichain plan"),
    ("overlap_steps", "auto", "auto, on or off, as for antichain plan"),
    ("in_flight", None, "with --schedule auto, as for antichain plan"),
    ("objective", "makespan", "what plans make small, as for antichain plan"),
    ("link_bytes_per_s", None, "bandwidth between ranks, such as 12GB; 0: infinite [the profile's]"),
    ("link_latency_s", None, "latency between ranks, such as 20us [the profile's]"),
    ("memory_bytes", None, "of each device, such as 64GiB [no limit]"),
    ("launcher", "mpirun", 'mpirun, srun, threads, or words such as "mpirun --bind-to none -n {}"'),
    ("time_scale", None, "of rehearsals [as for antichain rehearse]"),
    ("payload", "token", "of rehearsals: token or true, as for antichain rehearse"),
    ("steps", 3, "of rehearsals"),
    ("epochs", 1, "of training"),
    ("train_steps", None, "of training, instead of epochs"),
    ("seed", 0, "of everything that is drawn"),
    ("dataset", "cifar10", "of training, as for antichain train"),
    ("data_dir", None, "of training, as for antichain train"),
    ("device", "cpu", "of training, and of profiles measured here"),
    ("threads", 1, "of each rank"),
    ("precision", "float32", "as for antichain train"),
)
WHOLE = {"microbatches", "microbatch", "epochs", "threads"}  # which are multiplied or counted here
DEFAULTS = {name: default for name, default, _ in SETTINGS}


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, as the program does."""

    def error(self, message):
        if "unrecognized arguments: " in message:
            word = message.partition(": ")[2].split()[0].partition("=")[0]
            known = [option for action in self._all_actions() for option in action.option_strings]
            near = difflib.get_close_matches(word, known, 1)
            message = f"there is no option '{word}': " + (
                f"did you mean {near[0]}?" if near else "see --help"
            )
        raise refusal(message)

    def _all_actions(self):
        inner = [
            p for a in self._actions if isinstance(a, argparse._SubParsersAction) for p in a.choices.values()
        ]
        return [*self._actions, *(action for parser in inner for action in parser._actions)]


def names(text, option, known, all_of):
    """Returns the names of a list with commas, or all. `known` are the names that there are, None where
    anything may be one."""
    if text == "all":
        return list(all_of)
    parts = text.split(",")
    if not all(parts) or len(set(parts)) < len(parts) or any("/" in part for part in parts):
        raise refusal(f"{option} takes names with commas between them, each once, not '{text}'")
    for part in parts:
        if known and part not in known:
            near = difflib.get_close_matches(part, known, 1)
            raise refusal(
                f"there is no method '{part}': "
                + (f"did you mean '{near[0]}'?" if near else f"choose {', '.join(known)}")
            )
    return parts


def counts(text, option, most=MOST_RANKS):
    """Returns the numbers of a list with commas."""
    parts = text.split(",")
    if len(set(parts)) < len(parts) or not all(
        p.isascii() and p.isdigit() and len(p) < 7 and 1 <= int(p) <= most for p in parts
    ):
        raise refusal(
            f"{option} takes numbers from 1 to {most} with commas between them, each once, not '{text}'"
        )
    return [int(part) for part in parts]


def parser():
    top = Parser(prog="python3 -m antichain.experiments", description=__doc__, allow_abbrev=False)
    commands = top.add_subparsers(dest="command", required=True, metavar="table1, speedup, sweep or report")

    def add(name, help):
        command = commands.add_parser(name, help=help, description=help, allow_abbrev=False)
        command.add_argument(
            "--program", metavar="FILE", help="the program [$ANTICHAIN, else antichain in PATH]"
        )
        command.add_argument(
            "--out", metavar="FOLDER", help="the results folder; what it holds of them is kept"
        )
        return command

    command = add("table1", "partitioning time of ten models by four methods, beside the publication's")
    command.add_argument("--profiles", metavar="FOLDER", help=SETTINGS[0][2])
    command.add_argument("--models", metavar="LIST", default="all", help="with commas between them")
    command.add_argument("--devices", metavar="LIST", default="4,8", help="numbers of devices")
    for name, help in (
        ("speedup", "models by methods on ranks: speedup, balance and bubble, with a report"),
        ("sweep", "the cells of a speedup study, without its report"),
    ):
        command = add(name, help)
        command.add_argument("--models", metavar="LIST", help="with commas between them [the paper's ten]")
        command.add_argument(
            "--graph", metavar="FILE", help="a network from elsewhere, beside --models or alone"
        )
        command.add_argument("--methods", metavar="LIST", default="all", help=", ".join(of.METHODS))
        command.add_argument("--ranks", metavar="LIST", default="1,2,4,8", help="numbers of ranks")
        command.add_argument("--mode", choices=list(of.MODES), default="simulate")
        for setting, default, help in SETTINGS:
            shown = help if default is None else f"{help} [{default}]"
            command.add_argument(f"--{setting.replace('_', '-')}", metavar="X", help=shown)
        command.add_argument("--watchdog", metavar="TIME", help="as for antichain train")
        command.add_argument("--dry-run", action="store_true", help="check the options, and end")
    command = add("report", "tables and figures of the cells that a folder holds; of OUT/parts, too")
    command.add_argument("--mode", choices=list(of.MODES), help="of the cells [of the last sweep]")
    return top


def axes(given, own):
    """Returns what is asked for; `own` is what the program says of the network of --graph, or None."""
    models = (
        [] if own and not given.models else names(given.models or "all", "--models", None, of.PAPER_MODELS)
    )
    if own and own["model"] not in models:
        models.append(own["model"])
    asked = {"models": models, "methods": names(given.methods, "--methods", of.METHODS, of.METHODS)}
    asked |= {"ranks": counts(given.ranks, "--ranks"), "mode": given.mode}
    return asked | ({"own": own["model"], "graph": given.graph} if own else {})


def check(program, asked, settings, dry_run):
    """Has the program say what is wrong with settings and models, before anything runs or waits in a
    queue."""
    for name in WHOLE:
        counts(str(settings[name]), f"--{name}", 100_000)
    step = ["--microbatches", settings["microbatches"], "--dry-run"]
    program.ask("plan", *words_of(settings, (*STEP, *LINK, "memory_bytes")), *step)
    if asked["mode"] != "simulate":
        program.ask("rehearse", "--profile", "any", *words_of(settings, REHEARSING), *step)
    if settings["device"].startswith("rehearse:"):
        raise refusal("a study rehearses by --mode rehearse, not by --device: give another device")
    if asked["mode"] == "measure":
        if settings["profiles"]:
            raise refusal(
                "measuring trains our own networks, and profiles them under the load of the run: leave out "
                "--profiles"
            )
        length = ["--steps", settings["train_steps"]] if settings["train_steps"] else []
        training = words_of(settings, ("dataset", "data_dir", "seed", "epochs", *COMPUTING))
        program.ask("train", *training, *length, "--batch", settings["microbatches"], *step)
    for model in asked["models"]:
        if not settings["profiles"] and model != asked.get("own"):
            program.ask("profile", "--model", model, *words_of(settings, COMPUTING), "--dry-run")
        elif settings["profiles"] and not (dry_run and not os.path.isdir(settings["profiles"])):
            profile_in(settings["profiles"], model)  # a folder that only nodes see is not looked at


def sweep(given, children):
    """Fills a folder. Returns the study and the sentences of the cells that failed."""
    settings = {name: getattr(given, name) for name in DEFAULTS}
    if settings["profiles"] is None and given.mode != "measure":
        settings["profiles"] = os.environ.get("ANTICHAIN_PIPEDREAM_PROFILES")
    out = ResultsFolder(given.out or "antichain-speedup", "speedup", given.dry_run)
    settings = out.settled(DEFAULTS, settings)
    program = Program(given.program, settings["launcher"], given.launcher or given.mode != "simulate")
    own = json.loads(program.ask("info", "--graph", given.graph, "--json", "-")) if given.graph else None
    settings |= out.settled({"network": None}, {"network": own and own["graph_hash"]})
    asked = axes(given, own)
    check(program, asked, settings, given.dry_run)
    if given.dry_run:
        print("antichain.experiments: nothing is wrong with the options, and nothing was run")
        sys.exit(0)
    out.write_record("speedup", program, settings, asked)
    study = Study(program, children, out, settings, asked, given.watchdog)
    return study, study.fill(lambda line: print(line, flush=True))


def stored(given, children):
    """Returns the study that a folder holds, with the parts of a sweep by several jobs, and a sentence for
    each cell that is not finished."""
    path = pathlib.Path(given.out or "antichain-speedup")
    parts = sorted(path.glob("parts/*/experiment.json"))
    if not (path / "experiment.json").exists() and not parts:
        raise refusal(f"{path} holds no study: name a folder that a sweep filled by --out", BAD_INPUT)
    out = ResultsFolder(path, "speedup")
    models = []
    for part in parts:
        out.record = json.loads(part.read_text())
        models += out.record["asked"]["models"]
        for folder in ("cells", "plans", "work", "logs", "profiles"):
            if (part.parent / folder).is_dir():
                shutil.copytree(part.parent / folder, path / folder, dirs_exist_ok=True)
    found = [of.read(file) for file in sorted(path.glob("cells/*.json"))]
    mode = given.mode or next(
        (mode for mode, done in of.MODES.items() for c in found if c["mode"] == done), ""
    )
    asked = out.record.get("asked") or {  # the program itself wrote no such record: what there is
        "models": _in_order(found, "model", of.PAPER_MODELS),
        "methods": _in_order(found, "method", of.METHODS),
        "ranks": sorted({cell["ranks"] for cell in found}),
        "mode": mode,
    }
    asked |= {"models": list(dict.fromkeys(models)) or asked["models"], "mode": given.mode or asked["mode"]}
    settings, program = out.settled({**DEFAULTS, "network": None}, {}), Program(given.program)
    out.write_record("speedup", program, settings, asked)
    study = Study(program, children, out, settings, asked)
    absent = [file.stem for file in study.files() if not file.exists()]
    return study, [f"{name} is not finished: see logs/{name}.log" for name in absent]


def _in_order(cells, axis, order):
    found = {cell[axis] for cell in cells}
    return [name for name in order if name in found] + sorted(found.difference(order))


def run_table1(given, children):
    out = ResultsFolder(given.out or "antichain-table1", "table1")
    settings = {"profiles": given.profiles or os.environ.get("ANTICHAIN_PIPEDREAM_PROFILES")}
    settings = out.settled({"profiles": None}, settings)
    models = names(given.models, "--models", None, of.PAPER_MODELS)
    devices = counts(given.devices, "--devices")
    program = Program(given.program)
    if not settings["profiles"]:
        for model in models:
            program.ask("profile", "--model", model, "--dry-run")
    out.write_record("table1", program, settings, {"models": models, "devices": devices})
    measuring = {**DEFAULTS, **settings}
    rows, refusals = table1.time_methods(program, children, out, measuring, models, devices)
    source = (
        f"Profiles of {settings['profiles']}."
        if settings["profiles"]
        else "Profiles measured here (cifar form)."
    )
    out.write("table1.json", json.dumps({"experiment": "table1", "rows": rows}, indent=2) + "\n")
    table1.report(rows, refusals, source, program.made_with()).write(out)
    print(f"Report: {out.path}/report.html\n\n{table1.text(rows, refusals, source)}")


def run(words):
    refuse_several_processes()
    given, start = parser().parse_args(words), time.monotonic()
    children = Children()
    if given.command == "table1":
        return run_table1(given, children)
    study, failures = stored(given, children) if given.command == "report" else sweep(given, children)
    if given.command != "sweep":
        report = Report(study, failures)
        for sentence in report.write():
            print(sentence)
        print(
            f"\n{report.summary()}\nReport: {study.out.path}/report.html, after"
            f" {time.monotonic() - start:.1f} s\n"
        )
        print(report.comparison().rstrip(), flush=True)
    doubt = starved_cells(study.finished())
    if doubt:
        print(f"antichain: warning: {doubt}", file=sys.stderr)
    if failures:
        raise refusal(
            f"{counted(len(failures), 'cell')} failed, the first: {failures[0]}: see {study.out.path}/logs;"
            " the same sweep tries them again",
            FAILED,
        )


def main():
    try:
        run(sys.argv[1:])
    except AntichainError as problem:
        print(f"antichain: {problem}", file=sys.stderr)
        sys.exit(problem.code or BAD_INPUT)


if __name__ == "__main__":
    main()
