"""The report of a study: tables first, then pictures, and its provenance at the end."""

import itertools
import shlex
import statistics

from antichain.experiments import cells as of
from antichain.experiments import figures, published
from antichain.experiments.document import Document, counted, literal, text_table

MOST_NAMED = 5  # starved cells
AS_BEST = 0.005  # what two digits don't show is no difference
ABOUT = {
    "simulate": "**All times here are simulated** from profiles: nothing ran.",
    "rehearse": (
        "**All times here are rehearsed**: real ranks, messages and schedules on this machine, but every node"
        " takes its profiled time by waiting instead of computing. Predicted stands for simulated."
    ),
    "measure": (
        "All times here are **measured** by training on ranks of this machine (device {device}, {precision},"
        " {threads} a rank). Predicted stands for simulated from a profile that was taken under the same"
        " load; rehearsed, for real ranks that wait for those times instead of computing; the difference is"
        " measured over predicted."
    ),
}
MARKS = (
    "Straight pipelines (one device a stage) have plain names; with `+replicas` the method also shares out"
    " replicas; `data-parallel` makes every device one. Bold: the best of the row. \\*: the best straight"
    " pipeline. -: no plan."
)
MEANS = (
    "Means are geometric, over the models that the method has a plan for. The publication's figures are of"
    " its own hardware and of training on CIFAR-10: they are there to place these, not to be compared digit"
    " by digit."
)


def number(x, digits=2):
    return "-" if x is None else f"{x:.{digits}f}"


def starved_cells(cells):
    """Returns a sentence where other programs had the cores during measured training, else ""."""
    names = [of.name(c["model"], c["method"], c["ranks"], "measure") for c in cells if of.starved(c)]
    if not names:
        return ""
    shown = names[:MOST_NAMED] + ["…"] * (len(names) > MOST_NAMED)
    return (
        f"In {len(names)} of {counted(len(cells), 'cell')} a rank was ready to run but had no core for more"
        f" than {of.DOUBTFUL_SHARE * 100:.0f} % of its time, so these figures are doubtful"
        f" ({', '.join(shown)}): delete them in cells/ and start the same command when nothing else runs"
        " there, with a core for every rank"
    )


class Report:
    def __init__(self, study, failures=()):
        self.study, self.cells, self.failures = study, study.finished(), list(failures)
        self.mode = of.MODES[study.mode]

    def write(self):
        """Draws the figures and writes report.md and report.html. Returns sentences about what is not
        there."""
        drawn, missing = figures.draw(self.study, self.cells)
        self.document = Document(f"Speedup study: {self.mode} steps")
        self._what_this_is()
        if self._published():
            header, rows = self._published()
            self.document.heading("Beside the publication")
            self.document.table(header, rows)
            self.document.paragraph(MEANS)
        self._all_methods(drawn)
        for model in self.study.models:
            self._one_model(model, drawn)
        self._open_ends(missing)
        self.document.heading("Made with")
        self.document.paragraph(f"{self.study.out.made_with()}, seed {self.study.settings['seed']}")
        self.document.paragraph(f"Command: `{shlex.join(self.study.out.record['command'])}`")
        self.document.write(self.study.out)
        return missing

    def summary(self):
        """Returns the speedups, a few lines for a terminal."""
        shown = [ranks for ranks in self.study.ranks if ranks > 1 or self.study.ranks == [1]]
        methods = self.study.methods
        rows = [
            [model, str(ranks), *(number(self._speedup(model, method, ranks)) for method in methods)]
            for model, ranks in itertools.product(self.study.models, shown)
        ]
        table = text_table(["model", "ranks", *methods], rows, keys=2)
        return f"Speedup over one rank, {self.mode}\n{table}"

    def comparison(self):
        """Returns the publication's speedups with those of the study, for a terminal."""
        if not self._published():
            theirs = " and ".join(f"{x} on {devices}" for devices, x in published.SPEEDUPS.items())
            return f"The publication reports speedups of {theirs} GPUs; this study has other numbers of them."
        header, (first, *rows) = self._published()
        models = counted(len(self.study.models), "model")
        table = text_table(header, [first, *([m, *row[1:]] for m, row in zip(self.study.methods, rows))])
        return f"Beside the publication: {self.mode}, mean of {models} (and the best)\n{table}"

    def _speedup(self, model, method, ranks):
        cell = of.find(self.cells, model, method, ranks)
        return of.speedup(self.cells, cell) if cell else None

    def _best(self, model, ranks, methods=of.METHODS):
        found = [self._speedup(model, method, ranks) for method in self.study.methods if method in methods]
        return max((x for x in found if x is not None), default=0)

    def _what_this_is(self):
        s = self.study.settings
        threads = counted(int(s["threads"]), "thread")
        self.document.paragraph(ABOUT[self.study.mode].format(**{**s, "threads": threads}))
        profiles = f"of {literal(s['profiles'])}" if s["profiles"] else "measured here"
        self.document.paragraph(
            f"{s['microbatches']} micro-batches a step under {literal(s['schedule'])}, objective"
            f" {s['objective']}; profiles {profiles}; link {_link(s)}. A speedup is over one rank doing the"
            " same step."
        )
        if starved_cells(self.cells):
            self.document.paragraph(f"**{literal(starved_cells(self.cells))}**")

    def _published(self):
        """Returns header and rows, or None where the study has nothing that the publication printed."""
        columns = [ranks for ranks in published.SPEEDUPS if ranks in self.study.ranks]
        if not columns:
            return None
        models = counted(len(self.study.models), "model")
        rows = [["the publication, on GPUs", *(number(published.SPEEDUPS[ranks]) for ranks in columns)]]
        for method in self.study.methods:
            row = [f"{method}, {self.mode}: mean of {models} (and the best)"]
            for ranks in columns:
                found = [x for m in self.study.models if (x := self._speedup(m, method, ranks)) is not None]
                mean = number(statistics.geometric_mean(found)) if found else "-"
                row.append(f"{mean} ({number(max(found))})" if found else mean)
            rows.append(row)
        return ["speedup over one device", *(f"{ranks} devices" for ranks in columns)], rows

    def _all_methods(self, drawn):
        for file in drawn.get(None, {}).values():
            self.document.picture(file, "Speedup of every model on the most ranks, by method")
        for ranks in (ranks for ranks in self.study.ranks if ranks > 1):
            self.document.heading(f"Speedup on {ranks} ranks")
            rows = [self._speedup_row(model, ranks) for model in self.study.models]
            self.document.table(["model", *self.study.methods], rows)
        self.document.paragraph(MARKS)

    def _speedup_row(self, model, ranks):
        best, best_straight = self._best(model, ranks), self._best(model, ranks, of.STRAIGHT)
        row = [literal(model)]
        for method in self.study.methods:
            x = self._speedup(model, method, ranks)
            is_best = x is not None and x >= best - AS_BEST
            is_best_straight = x is not None and method in of.STRAIGHT and x >= best_straight - AS_BEST
            row.append((f"**{number(x)}**" if is_best else number(x)) + "\\*" * is_best_straight)
        return row

    def _one_model(self, model, drawn):
        images = any(c["model"] == model and c.get("microbatch", 0) > 0 for c in self.cells)
        header = ["method", "ranks", "stages", "samples/s" if images else "throughput", "speedup"]
        header += ["imbalance", "bubble, %", "planning, ms", "predicted step, ms"]
        header += {
            "simulate": [],
            "rehearse": ["rehearsed step, ms", "difference, %"],
            "measure": ["rehearsed step, ms", "measured step, ms", "difference, %", "test accuracy, %"],
        }[self.study.mode]
        rows = []
        for ranks in self.study.ranks:
            found = of.find_all(self.cells, [model], self.study.methods, [ranks])
            # On one rank all methods do the same.
            rows += [self._model_row(cell) for cell in (found[:1] if ranks == 1 else found)]
        self.document.heading(literal(model))
        self.document.table(header, rows)
        for kind, file in drawn.get(model, {}).items():
            self.document.picture(file, f"{model}: {figures.CAPTIONS[kind]}")

    def _model_row(self, cell):
        x, ranks = of.speedup(self.cells, cell), cell["ranks"]
        images = cell["microbatch"] * cell["microbatches"]
        best = ranks > 1 and x >= self._best(cell["model"], ranks) - AS_BEST
        row = ["any" if ranks == 1 else cell["method"], str(ranks), cell["stages"]]
        row.append(number(images / of.step_s(cell), 1) if images else f"{number(x)} x")
        row += [f"**{number(x)}**" if best else number(x), number(cell["imbalance"])]
        row += [number(of.shares(cell)["bubble_share"] * 100, 1), number(cell["planning_s"] * 1e3)]
        row.append(number(cell["predicted"]["step_s"] * 1e3))
        if self.study.mode == "simulate":
            return row
        row.append(number(cell["rehearsed"]["step_s"] * 1e3) if "rehearsed" in cell else "-")
        measured, difference = cell.get("measured"), f"{of.over_predicted(cell):+.1f}"
        if not measured:
            return [*row, difference]
        accuracy = number(measured["test_accuracy"] * 100) if "test_accuracy" in measured else "-"
        return [*row, number(measured["step_s"] * 1e3), difference, accuracy]

    def _open_ends(self, missing):
        """Lists what is missing, and why."""
        refused = [cell for cell in self.cells if "refusal" in cell]
        if not (refused or missing or self.failures):
            return
        self.document.heading("What is not there")
        for sentence in missing:
            self.document.paragraph(literal(sentence))
        for sentence in self.failures:
            self.document.paragraph(f"Failed: {literal(sentence)}")
        if refused:
            rows = [f"{c['model']} by {c['method']} on {c['ranks']}: {c['refusal']}" for c in refused]
            self.document.table(["no plan, or none that can run"], [[literal(row)] for row in rows])


def _link(settings):
    """Returns what is said of the link between ranks."""
    rate, latency = settings["link_bytes_per_s"], settings["link_latency_s"]
    if rate is None and latency is None:
        return "as profiled (free where a profile has none)"
    if rate is not None:
        rate = "infinitely fast" if str(rate) in ("0", "0.0") else f"{rate} bytes/s"
    rate = rate or "as profiled"
    return f"{rate}, latency {'as profiled' if latency is None else latency}"
