"""The command line of the experiments."""

import argparse
import difflib
import json
import os
import pathlib
import re
import shutil
import sys
import time

from antichain.error import AntichainError
from antichain.experiments import cells as of
from antichain.experiments import table1
from antichain.experiments.document import counted
from antichain.experiments.folder import ResultsFolder, own_command
from antichain.experiments.report import Report, starved_cells
from antichain.experiments.start import BAD_INPUT, FAILED, Children, Program, alone, refusal
from antichain.experiments.study import COMPUTING, LINK, REHEARSING, STEP, Study, flag, profile_in, words_of

MOST_RANKS, MOST_COUNTED = 1024, 999_999
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
DEFAULTS = {name: default for name, default, _ in SETTINGS}
TRAINING = ("epochs", "seed", "dataset", "data_dir", *COMPUTING)
OF_OUR_PROFILES = ("microbatch", "train_steps", *TRAINING)  # another's say nothing of how to train


def near(word, known, otherwise):
    found = difflib.get_close_matches(word, known, 1)
    return f"did you mean {found[0]}?" if found else otherwise


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, as the program does."""

    options = set()  # of all commands

    def add_argument(self, *names, **how):
        self.options.update(names)
        return super().add_argument(*names, **how)

    def error(self, message):
        if "unrecognized arguments: " in message:
            word = message.partition(": ")[2].split()[0].partition("=")[0]
            message = f"there is no option '{word}': {near(word, self.options, 'see --help')}"
        raise refusal(re.sub("^argument (--[a-z]+): takes", r"\1 takes", message))


def names(all_of, known=None):
    """Returns a function that takes a list of names with commas, or "all". `known` are the names that there
    are, None where anything may be one."""

    def listed(text):
        if text == "all":
            return list(all_of)
        parts = text.split(",")
        if not all(parts) or len(set(parts)) < len(parts) or any("/" in part for part in parts):
            raise argparse.ArgumentTypeError(f"takes names with commas between them, each once, not '{text}'")
        for part in parts:
            if known and part not in known:
                hint = near(part, [f"'{name}'" for name in known], f"choose {', '.join(known)}")
                raise argparse.ArgumentTypeError(f"there is no method '{part}': {hint}")
        return parts

    return listed


def is_count(text, most):
    return text.isascii() and text.isdigit() and len(text) <= len(str(most)) and 1 <= int(text) <= most


def counts(text):
    """Takes a list of numbers with commas."""
    parts = text.split(",")
    if len(set(parts)) < len(parts) or not all(is_count(part, MOST_RANKS) for part in parts):
        what = f"numbers from 1 to {MOST_RANKS} with commas between them, each once"
        raise argparse.ArgumentTypeError(f"takes {what}, not '{text}'")
    return [int(part) for part in parts]


def parser():
    top = Parser(prog="python3 -m antichain.experiments", description=__doc__, allow_abbrev=False)
    commands = top.add_subparsers(dest="command", required=True, metavar="table1, speedup, sweep or report")

    def add(name, help):
        command = commands.add_parser(name, help=help, description=help, allow_abbrev=False)
        command.add_argument("--program", metavar="FILE", help="[$ANTICHAIN, else antichain in PATH]")
        command.add_argument("--out", metavar="FOLDER", help="the results; what it holds of them is kept")
        return command

    models, methods = names(of.PAPER_MODELS), names(of.METHODS, of.METHODS)
    listed = {"metavar": "LIST", "help": "with commas between them"}
    command = add("table1", "partitioning time of ten models by four methods, beside the publication's")
    command.add_argument("--profiles", metavar="FOLDER", help=SETTINGS[0][2])
    command.add_argument("--models", type=models, default="all", **listed)
    command.add_argument("--devices", type=counts, default="4,8", **listed)
    for command in (
        add("speedup", "models by methods on ranks: speedup, balance and bubble, with a report"),
        add("sweep", "the cells of a speedup study, without its report"),
    ):
        command.add_argument("--models", type=models, metavar="LIST", help="with commas [the paper's ten]")
        command.add_argument("--graph", metavar="FILE", help="a network of your own, or beside --models")
        command.add_argument("--methods", type=methods, default="all", help=", ".join(of.METHODS))
        command.add_argument("--ranks", type=counts, default="1,2,4,8", **listed)
        command.add_argument("--mode", choices=list(of.MODES), default="simulate")
        for setting, default, help in SETTINGS:
            shown = help if default is None else f"{help} [{default}]"
            command.add_argument(flag(setting), metavar="X", help=shown)
        command.add_argument("--watchdog", metavar="TIME", help="of ranks, as for antichain train")
        command.add_argument("--dry-run", action="store_true", help="check the options, and end")
    command = add("report", "tables and figures of the cells that a folder holds; of OUT/parts, too")
    command.add_argument("--mode", choices=list(of.MODES), help="of the cells [of the last sweep]")
    return top


def axes(given, own):
    """Returns what is asked for; `own` is what the program says of the network of --graph, or None."""
    models = given.models or ([] if own else list(of.PAPER_MODELS))
    if own and own["model"] not in models:
        models.append(own["model"])
    asked = {"models": models, "methods": given.methods, "ranks": given.ranks, "mode": given.mode}
    return asked | ({"own": own["model"], "graph": given.graph} if own else {})


def check(program, given, asked, settings):
    """Has the program say what is wrong with settings and models, before anything runs or waits in a queue.
    Settings of another mode are kept for it, so they are checked, too."""
    profiles = settings["profiles"]
    if profiles and given.mode == "measure":
        raise refusal(
            "measuring trains our own networks, and profiles them under the load of the run: leave out"
            " --profiles"
        )
    idle = [flag(name) for name in OF_OUR_PROFILES if profiles and getattr(given, name) is not None]
    if idle:
        raise refusal(f"{idle[0]} does nothing with the profiles of {profiles}: leave out one of the two")
    if given.watchdog and given.mode == "simulate":
        raise refusal("--watchdog does nothing where no rank runs: leave it out, or give another --mode")
    if settings["in_flight"] and settings["schedule"] != "auto":
        raise refusal("--in-flight limits the orders of --schedule auto: leave it out, or give that")
    if settings["device"].startswith("rehearse:"):
        raise refusal("a study rehearses by --mode rehearse, not by --device: give another device")
    if given.epochs is not None and given.train_steps is not None:
        raise refusal("--train-steps says how long to train, and so does --epochs: leave out one of the two")
    for name in ("microbatch", "train_steps"):  # which are not called so where the program is asked
        if settings[name] is not None and not is_count(str(settings[name]), MOST_COUNTED):
            raise refusal(f"{flag(name)} takes a number from 1 to {MOST_COUNTED}, not '{settings[name]}'")
    step = ["--microbatches", settings["microbatches"], "--dry-run"]
    program.ask("plan", *words_of(settings, (*STEP, *LINK, "memory_bytes")), *step)
    watchdog = ["--watchdog", given.watchdog] if given.watchdog else []
    program.ask("rehearse", "--profile", "any", *words_of(settings, REHEARSING), *watchdog, *step)
    length = ["--steps", settings["train_steps"]] if settings["train_steps"] is not None else []
    program.ask("train", *words_of(settings, TRAINING), *length, "--batch", settings["microbatches"], *step)
    for model in asked["models"]:
        if not profiles and model != asked.get("own"):
            program.ask("profile", "--model", model, *words_of(settings, COMPUTING), "--dry-run")
        elif profiles and not (given.dry_run and not os.path.isdir(profiles)):
            profile_in(profiles, model)  # a folder that only nodes see is not looked at


def sweep(given, children):
    """Fills a folder. Returns the study and the sentences of the cells that failed."""
    settings = {name: getattr(given, name) for name in DEFAULTS}
    if settings["profiles"] is None and given.mode != "measure":
        settings["profiles"] = os.environ.get("ANTICHAIN_PIPEDREAM_PROFILES")
    out = ResultsFolder(given.out or "antichain-speedup", "speedup", given.dry_run)
    settings = out.settled(DEFAULTS, settings)
    starts_ranks = given.launcher is not None or given.mode != "simulate"
    program = Program(given.program, settings["launcher"], starts_ranks)
    own = json.loads(program.ask("info", "--graph", given.graph, "--json", "-")) if given.graph else None
    settings |= out.settled({"network": None}, {"network": own and own["graph_hash"]})
    asked = axes(given, own)
    check(program, given, asked, settings)
    if given.dry_run:
        print("antichain.experiments: nothing is wrong with the options, and nothing was run")
        sys.exit(0)
    if not starts_ranks and "launcher" not in out.record.get("settings", ()):
        del settings["launcher"]  # so the first sweep that starts ranks may choose
    out.write_record("speedup", program, settings, asked)
    study = Study(program, children, out, settings, asked, given.watchdog)
    return study, study.fill(lambda line: print(line, flush=True))


def stored(given, children):
    """Returns the study that a folder holds, with the parts of a sweep by several jobs, and a sentence for
    each cell that is not finished."""
    path = pathlib.Path(given.out or "antichain-speedup")
    parts = sorted(file.parent for file in path.glob("parts/*/experiment.json"))
    parts = [ResultsFolder(part, "speedup", only_look=True) for part in parts]
    if not (path / "experiment.json").exists() and not parts:
        raise refusal(f"{path} holds no study: name a folder that a sweep filled by --out", BAD_INPUT)
    out = ResultsFolder(path, "speedup")
    for part in parts:
        of_jobs = {"launcher": parts[0].record["settings"].get("launcher")}  # which may differ
        if part.record["settings"] | of_jobs != parts[0].record["settings"] | of_jobs:
            raise refusal(f"{part.path} and {parts[0].path} are of other settings: delete what is not wanted")
        for folder in ("cells", "plans", "work", "logs", "profiles"):
            if (part.path / folder).is_dir():
                shutil.copytree(part.path / folder, path / folder, dirs_exist_ok=True)
    found = [of.read(file) for file in sorted(path.glob("cells/*.json"))]
    records = [part.record for part in parts] or [out.record]
    asked = [record["asked"] for record in records if record.get("asked")]
    if asked:
        for axis in ("models", "methods", "ranks"):
            asked[-1][axis] = list(dict.fromkeys(name for one in asked for name in one[axis]))
        asked = asked[-1]
    elif found:  # the program itself wrote no such record: what there is
        asked = {"models": _in_order(found, "model", of.PAPER_MODELS)}
        asked |= {"methods": _in_order(found, "method", of.METHODS), "ranks": _in_order(found, "ranks", ())}
        asked["mode"] = next(mode for mode, done in of.MODES.items() if any(c["mode"] == done for c in found))
    else:
        raise refusal(f"{path} holds no cell: start the sweep again", BAD_INPUT)
    asked["mode"] = given.mode or asked["mode"]
    if parts:
        out.keep(records[-1] | {"command": own_command(), "asked": asked})
    settings = out.settled({**DEFAULTS, "network": None}, {})
    study = Study(Program(given.program), children, out, settings, asked)
    absent = [file.stem for file in study.files() if not file.exists()]
    return study, [f"{name} is not finished: see logs/{name}.log" for name in absent]


def _in_order(cells, axis, order):
    found = {cell[axis] for cell in cells}
    return [name for name in order if name in found] + sorted(found.difference(order))


def run_table1(given, children):
    out = ResultsFolder(given.out or "antichain-table1", "table1")
    settings = {"profiles": given.profiles or os.environ.get("ANTICHAIN_PIPEDREAM_PROFILES")}
    settings = out.settled({"profiles": None}, settings)
    models, devices, program = given.models, given.devices, Program(given.program)
    for model in models:
        if settings["profiles"]:
            profile_in(settings["profiles"], model)
        else:
            program.ask("profile", "--model", model, "--dry-run")
    out.write_record("table1", program, settings, {"models": models, "devices": devices})
    rows, refusals = table1.time_methods(program, children, out, {**DEFAULTS, **settings}, models, devices)
    source = f"of {settings['profiles']}" if settings["profiles"] else "measured here (cifar form)"
    out.write("table1.json", json.dumps({"experiment": "table1", "rows": rows}, indent=2) + "\n")
    report = table1.report(rows, refusals, f"Profiles {source}.")
    print(f"Report: {out.path}/report.html\n\n{report.text().rstrip()}")
    report.paragraph(f"Made by {out.made_with()}")
    report.write(out)


def run(words):
    children, start = Children(), time.monotonic()
    alone()
    given = parser().parse_args(words)
    if given.command == "table1":
        return run_table1(given, children)
    study, failures = stored(given, children) if given.command == "report" else sweep(given, children)
    if given.command != "sweep":
        report = Report(study, failures)
        for sentence in report.write():
            print(sentence)
        took = f"Report: {study.out.path}/report.html, after {time.monotonic() - start:.1f} s"
        print(f"\n{report.summary()}\n{took}\n\n{report.comparison().rstrip()}", flush=True)
    doubt = starved_cells(study.finished())
    if doubt:
        print(f"antichain: warning: {doubt}", file=sys.stderr)
    if failures:
        raise refusal(
            f"{counted(len(failures), 'cell')} failed, the first: {failures[0]}: see {study.out.path}/logs;"
            " the same sweep tries them again", FAILED
        )


def main():
    os.environ["NO_COLOR"] = "1"  # mpirun's ranks write to terminals of its own
    try:
        run(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # nobody reads on, as behind `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except (AntichainError, OSError, UnicodeError) as problem:
        file = getattr(problem, "filename", None)
        print(f"antichain: {f'{file}: {problem.strerror}' if file else problem}", file=sys.stderr)
        sys.exit(getattr(problem, "code", None) or BAD_INPUT)


if __name__ == "__main__":
    main()
