"""A study fills the cells of models by methods on ranks, one after the other. Each plan, rehearsal and
training is a child process, so a rank's failure leaves the study and its finished cells intact."""

import itertools
import json
import pathlib

from antichain.error import AntichainError
from antichain.experiments import cells as of
from antichain.experiments.document import counted
from antichain.experiments.start import BAD_INPUT, FAILED, STOPPED, USAGE, is_refusal, last_words, refusal
from antichain.files import write_whole

STEP = ("schedule", "chunks", "overlap_steps", "in_flight", "objective")
LINK = ("link_bytes_per_s", "link_latency_s")
COMPUTING = ("device", "threads", "precision")
REHEARSING = ("payload", "steps", "time_scale")
OF_PROFILE = 4  # micro-batches that a profile is measured with
CURVE = 400  # points of a loss curve at most
TAKEN = "microbatch microbatches stages planning_s slowest_s imbalance boundary_bytes".split()


class ChildFailed(Exception):
    """A child process failed, so the cell stays open."""


def flag(setting):
    return f"--{setting.replace('_', '-')}"


def words_of(settings, names):
    """Returns settings as words of a command line; None is one that was not given."""
    given = [name for name in names if settings[name] is not None]
    return [word for name in given for word in (flag(name), str(settings[name]))]


def profile_in(folder, model):
    """Returns the profile of a model in a folder of profiles. Throws AntichainError naming the folder."""
    for name in (f"{model}.txt", f"{model}.json", f"{model}/graph.txt"):
        if (pathlib.Path(folder) / name).is_file():
            return pathlib.Path(folder) / name
    names = f"neither {model}.txt nor {model}.json nor {model}/graph.txt"
    hint = "give another --profiles, or --models without it"
    raise refusal(f"{folder} has no profile of {model}: {names}: {hint}", BAD_INPUT)


class Profiles:
    """Where profiles come from: a folder, or measured once and kept in OUT/profiles."""

    def __init__(self, program, children, out, settings, asked):
        self.program, self.children, self.out, self.settings = program, children, out, settings
        self.measuring = asked.get("mode") == "measure"  # under the load of the run
        self.own, self.graph = asked.get("own"), asked.get("graph")

    def network_words(self, model):
        return ["--graph", self.graph] if model == self.own else ["--model", model, "--form", "cifar"]

    def profile_path(self, model, ranks):
        if self.settings["profiles"]:
            return profile_in(self.settings["profiles"], model)
        size = self.settings["microbatch"]
        return self.out.path / "profiles" / f"{model}-cifar-{size}-{ranks if self.measuring else 1}.json"

    def profile(self, model, ranks):
        """Returns the path of a profile, which is measured where it is not there."""
        file = self.profile_path(model, ranks)
        if file.is_file():  # whole, as the program writes it
            return file
        log = self.out.file("profiles", file.name + ".log")
        words = ["profile", "--batch", int(self.settings["microbatch"]) * OF_PROFILE]
        words += ["--microbatches", OF_PROFILE, "--json", file, *self.network_words(model)]
        words += words_of(self.settings, COMPUTING)
        code = self.children.run(self.program.start(words, ranks if self.measuring else None), log)
        self.children.check()
        if code or not file.is_file():
            raise refusal(f"measuring {model} ended with code {code}: {last_words(log)}: see {log}", FAILED)
        return file


class Study(Profiles):
    """What is asked for: `settings`, on which a cell's figures depend, and the axes of the study."""

    def __init__(self, program, children, out, settings, asked, watchdog=None):
        super().__init__(program, children, out, settings, asked)
        self.models, self.methods, self.ranks = asked["models"], asked["methods"], asked["ranks"]
        self.mode, self.watchdog = asked["mode"], watchdog

    def cell_file(self, model, method, ranks):
        return self.out.file("cells", of.name(model, method, ranks, self.mode) + ".json")

    def keys(self):
        """Returns (model, ranks, method) of every cell."""
        return itertools.product(self.models, self.ranks, self.methods)

    def files(self):
        return [self.cell_file(model, method, ranks) for model, ranks, method in self.keys()]

    def finished(self):
        return [of.read(file) for file in self.files() if file.exists()]

    def fill(self, say):
        """Fills the cells that are missing and returns the sentences of those that failed. Throws
        AntichainError where it is stopped; finished cells then stay, and the same command goes on."""
        total, done, failures, profile = len(self.files()), 0, [], None
        cells, simulated = self.finished(), 0
        for number, (model, ranks, method) in enumerate(self.keys(), 1):
            file = self.cell_file(model, method, ranks)
            if method == self.methods[0]:
                profile = None  # found or measured when a cell first needs it
            try:
                if not file.exists():
                    self.children.check()
                    profile = profile or self._checked(self.profile(model, ranks))
                    cell = self._cell(model, method, ranks, profile)
                    write_whole(file, (json.dumps(cell, indent=2) + "\n").encode())
                    cells.append(cell)
                    simulated += 1
                    if self.mode != "simulate":  # which takes no time to speak of
                        say(f"[{number}/{total}] {self._progress(cells, cell)}")
                done += 1
            except ChildFailed as failed:
                failures.append(str(failed))
                say(f"[{number}/{total}] {failed}")
            except AntichainError as problem:
                if problem.code != STOPPED:
                    raise
                kept = f"stopped with {done} of {total} cells done, which are kept in {self.out.path}"
                raise refusal(f"{kept}: the same command goes on", STOPPED) from problem
            if (ranks, method) == (self.ranks[-1], self.methods[-1]):
                if self.mode == "simulate" and simulated:
                    say(f"[{number}/{total}] {model}: {counted(simulated, 'cell')} simulated")
                simulated = 0
        return failures

    def _checked(self, profile):
        """A profile that can't be read, or options that don't fit together, are no results of a cell."""
        words = ["simulate", "--profile", profile, "--stages", 1, "--method", "uniform"]
        names = {*STEP, *LINK, "microbatches"} - {"in_flight"}  # which may be one for each rank
        words += words_of(self.settings, sorted(names))
        if not json.loads(self.program.ask(*words, "--json", "-"))["period_s"]:
            raise refusal(f"{profile} says that nothing takes time: profile the network again", BAD_INPUT)
        return profile

    def _cell(self, model, method, ranks, profile):
        def files(mode, folder, ending):
            return self.out.file(folder, of.name(model, method, ranks, mode) + ending)

        key = {"format": of.FORMAT, "mode": of.MODES[self.mode]}
        key |= {"model": model, "method": method, "ranks": ranks}
        plan = files(self.mode, "plans", ".json")
        order = files(self.mode, "plans", ".schedule")  # found with the plan, and not searched again
        searched = self.settings["schedule"] == "auto"
        words = ["simulate", "--profile", profile, "--stages", ranks, "--write-plan", plan, "--method"]
        words += [method.replace("+replicas", ""), "--replicas", "off" if method in of.STRAIGHT else "auto"]
        words += words_of(self.settings, (*STEP, *LINK, "memory_bytes", "microbatches"))
        words += ["--write-schedule", order] if searched else []
        refused, step = self._run(words, None, files, "simulate")
        if refused:
            return {**key, "refusal": refused.split(": ")[0]}  # what to do has no room in a table
        planned = json.loads(plan.read_text())
        memory = [0] * step["ranks"]
        for stage in planned["stages"]:
            for rank in stage["ranks"]:
                memory[rank] += stage["memory_bytes"]
        cell = {**key, **{field: step[field] for field in TAKEN}, "one_device_s": step["one_device_step_s"]}
        cell |= {"plan_hash": planned["stages_hash"], "memory_bytes": max(memory), "time_scale": 1}
        cell["predicted"] = {"step_s": step["period_s"]} | {f: step[f] for f in ("bubble_share", "busy_s")}
        given = ["--plan", plan, "--profile", profile]
        given += ["--schedule", order if searched else self.settings["schedule"]]
        given += words_of(self.settings, ("microbatches", "overlap_steps"))
        given += ["--watchdog", self.watchdog] if self.watchdog else []
        # What is measured is rehearsed as well, which separates the runtime's overhead from computing.
        for mode in list(of.MODES)[1 : list(of.MODES).index(self.mode) + 1]:
            metrics = files(mode, "work", ".metrics")
            words = self.rehearsal() if mode == "rehearse" else self.training(model, metrics)
            words += given + ["--trace", files(mode, "work", ".trace.json")]
            refused, result = self._run(words, ranks, files, mode)
            if refused:
                return {**key, "refusal": refused}
            if mode == "rehearse":
                shares = {field: result[f"rehearsed_{field}"] for field in ("bubble_share", "busy_s")}
                cell["time_scale"] = result["time_scale"]
                cell["rehearsed"] = {"step_s": result["rehearsed_period_s"], **shares}
            else:
                cell["measured"] = _trained(result, metrics)
        return cell

    def rehearsal(self):
        return ["rehearse", *words_of(self.settings, (*REHEARSING, *LINK))]

    def training(self, model, metrics):
        words = ["train", *self.network_words(model), "--metrics", metrics]
        microbatch = self.settings["microbatch"]
        words += ["--batch", int(microbatch) * int(self.settings["microbatches"])]
        words += words_of(self.settings, ("dataset", "data_dir", "seed", *COMPUTING))
        steps = self.settings["train_steps"]
        return words + (["--steps", steps] if steps else ["--epochs", self.settings["epochs"]])

    def _run(self, words, ranks, files, mode):
        """Runs a command, on ranks or on none. Returns why it is refused, or None, and its results."""
        results, log = files(mode, "work", ".json"), files(mode, "logs", ".log")
        results.unlink(missing_ok=True)
        code = self.children.run(self.program.start([*words, "--json", results], ranks), log)
        self.children.check()
        why = last_words(log) if code else ""
        if code == USAGE or (mode == "simulate" and is_refusal(code)):
            return why, None
        if code or not results.exists():
            raise ChildFailed(f"{results.stem} ended with code {code}: {why}")
        return None, json.loads(results.read_text())

    def _progress(self, cells, cell):
        head = f"{cell['model']} on {cell['ranks']} by {cell['method']}: "
        if "refusal" in cell:
            return head + cell["refusal"]
        if "measured" in cell and not of.one_rank_of(cells, cell):  # a speedup is over another measured step
            speed = f"{cell['mode']} {of.step_s(cell) * 1e3:.2f} ms a step"
        else:
            speed = f"{cell['mode']} {of.speedup(cells, cell):.2f} times one rank"
        doubt = ""
        if of.starved(cell):
            doubt = f"; without a core for {cell['measured']['starved_share'] * 100:.1f} % of the time"
        return f"{head}{speed}; {of.over_predicted(cell):+.1f} % from predicted{doubt}"


def _trained(result, metrics):
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    loss = [{x: line[x] for x in ("step", "loss")} for line in lines if {"step", "loss"} <= line.keys()]
    measured = {"step_s": result["measured_step_s"], "steps": result["steps"], "data": result["data"]}
    measured |= {"starved_share": result["starved_share"], "loss": loss[:: len(loss) // CURVE + 1]}
    if "final_test_accuracy" in result:
        measured["test_accuracy"] = result["final_test_accuracy"]
    return measured
