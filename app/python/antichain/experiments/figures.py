"""Draws the pictures of a study: by matplotlib, and the networks by Graphviz, as SVG files. Colours are those
of the plan's graph, which colour-blind readers can tell apart. Lines also differ in their markers and
dashes."""

import contextlib
import json
import shutil

from antichain.error import AntichainError
from antichain.experiments import cells as of
from antichain.experiments.start import last_words
from antichain.experiments.study import LINK, words_of

CAPTIONS = {
    "speedup": "speedup against ranks", "stages": "work of every rank in a step",
    "timeline": "a step as a timeline", "loss": "training loss", "graph": "stages",
}
# Those of partition/search/dot.cpp: M. Okabe and K. Ito, "Color Universal Design", 2008.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B5A900", "#666666")
KINDS = {  # of a timeline's boxes
    "forward": ("forward", "#56B4E9"),
    "backward": ("backward", "#E69F00"),
    "reduce": ("all-reduce", "#CC79A7"),
    "step": ("update", "#006B4F"),
}
MARKS, DASHES = "os^vDPX*<>", ("-", "--", "-.", ":")
INCH = 100  # pixels
STYLE = {"svg.hashsalt": "antichain", "svg.fonttype": "none", "font.family": "sans-serif"}
STYLE["text.parse_math"] = False  # names may have dollars
LEAST = 3, 6  # of matplotlib
NO_PLOTS = "No plots: matplotlib is not installed (on Debian: python3-matplotlib)."
OLD_PLOTS = "No plots: this matplotlib is older than 3.6."
NO_GRAPHS = "No graphs of models: Graphviz is not installed (on Debian: graphviz)."


def draw(study, cells):
    """Draws all pictures. Returns their files, relative to the results folder, by model and kind, those of
    all models under None; and a sentence for each reason why pictures are missing."""
    painter = _Painter(study, cells)
    try:
        import matplotlib

        if getattr(matplotlib, "__version_info__", ())[:2] >= LEAST:
            matplotlib.use("Agg")
            matplotlib.rcParams.update(STYLE)
            painter.plots()
        else:
            painter.missing.append(OLD_PLOTS)
    except ImportError:
        painter.missing.append(NO_PLOTS)
    if shutil.which("dot"):
        painter.of_models("graph", painter.graph)
    else:
        painter.missing.append(NO_GRAPHS)
    return painter.drawn, painter.missing


def _line(i):
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": DASHES[i % len(DASHES)]}


class _Painter:
    def __init__(self, study, cells):
        self.study, self.cells, self.drawn, self.missing = study, cells, {}, []
        self.ranks, self.label = sorted(study.ranks), of.MODES[study.mode]
        self.most = self.ranks[-1]

    def find(self, models, methods, ranks):
        return of.find_all(self.cells, models, methods, ranks)

    def of_models(self, what, draw):
        """Draws the plan of the first method that has one, on the most ranks, of every model. `draw` takes
        its cell, and the words that name its profile and plan."""
        for model in self.study.models:
            for cell in self.find([model], self.study.methods, [self.most])[:1]:
                name = of.name(model, cell["method"], self.most, self.study.mode)
                plan = self.study.out.path / "plans" / f"{name}.json"
                words = ["--profile", self.study.profile_path(model, self.most), "--plan", plan]
                try:
                    draw(model, cell, name, words)
                except AntichainError as problem:
                    self.missing.append(f"No {what} of {model}: {problem}")

    def graph(self, model, cell, name, words):
        dot, svg = (self.study.out.file("figures", f"model-{model}.{ending}") for ending in ("dot", "svg"))
        log = self.study.out.file("logs", "dot.log")
        self.study.program.ask("plan", *words, "--dot", dot)
        if self.study.children.run(["dot", "-Tsvg", str(dot), "-o", str(svg)], log):
            raise AntichainError(last_words(log))
        self.drawn.setdefault(model, {})["graph"] = f"figures/{svg.name}"

    def plots(self):
        # They have separate pictures, because ten bars a model can't be told apart.
        for kind, straight, more in (("overview", True, ""), ("overview-replicas", False, ", with replicas")):
            methods = [method for method in self.study.methods if (method in of.STRAIGHT) == straight]
            self._overview(kind, methods, more)
        for model in self.study.models:
            self._speedups(model)
            self._stages(model)
        self.of_models("timeline", self._timeline)
        for model in self.study.models:
            self._losses(model)

    @contextlib.contextmanager
    def _figure(self, model, kind, title, x, y, width=900, height=480, below=False):
        """Gives axes to draw on, and writes the picture, with the legend to the right of it or below."""
        import matplotlib.pyplot

        figure, axes = matplotlib.pyplot.subplots(figsize=(width / INCH, height / INCH), layout="constrained")
        axes.set(title=title, xlabel=x, ylabel=y, axisbelow=True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#dddddd")
        yield axes
        if below:
            share = 0.28 / figure.get_figheight()
            figure.get_layout_engine().set(rect=(0, share, 1, 1 - share))
            figure.legend(loc="lower center", ncols=len(KINDS), frameon=False)
        else:
            axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
        file = self.study.out.file("figures", f"{kind}-{model}.svg" if model else f"{kind}.svg")
        figure.savefig(file, metadata={"Date": None})
        matplotlib.pyplot.close(figure)
        self.drawn.setdefault(model, {})[kind] = f"figures/{file.name}"

    def _bars(self, axes, groups, series):
        """Draws groups of bars: `series` has (name, colour number, a value or None for each group)."""
        width = 0.8 / len(series)
        for i, (name, colour, values) in enumerate(series):
            at = [g - 0.4 + (i + 0.5) * width for g in range(len(groups))]
            look = {"color": COLOURS[colour % len(COLOURS)], "hatch": "" if colour < len(COLOURS) else "///"}
            axes.bar(at, [value or 0 for value in values], width * 0.95, label=name, **look)
        axes.set_xticks(range(len(groups)), groups, rotation=20 if len(groups) > 5 else 0)

    def _overview(self, kind, methods, more):
        models = self.study.models
        if not self.find(models, methods, [self.most]):
            return
        width = min(max(400 + 12 * len(models) * len(methods), 700), 1200)
        title = f"Speedup on {self.most} ranks, {self.label}{more}"
        series = []
        for method in methods:
            cells = [of.find(self.cells, model, method, self.most) for model in models]
            values = [cell and of.speedup(self.cells, cell) for cell in cells]
            series.append((method, of.METHODS.index(method), values))
        with self._figure(None, kind, title, "model", "speedup over one rank", width) as axes:
            self._bars(axes, models, series)

    def _speedups(self, model):
        if len(self.ranks) < 2 or not self.find([model], self.study.methods, self.ranks):
            return
        ends, title = [self.ranks[0], self.most], f"{model}, {self.label}"
        with self._figure(model, "speedup", title, "ranks", "speedup over one rank") as axes:
            axes.plot(ends, ends, color="#999999", linestyle=":", label="as many times as ranks")
            for method in self.study.methods:
                cells, i = self.find([model], [method], self.ranks), of.METHODS.index(method)
                x, y = [cell["ranks"] for cell in cells], [of.speedup(self.cells, cell) for cell in cells]
                if cells:
                    axes.plot(x, y, marker=MARKS[i], label=method, **_line(i))
            axes.set(xticks=self.ranks, ylim=(0, self.most + 0.2))

    def _stages(self, model):
        """The difference to the longest bar of a method is imbalance."""
        cells = self.find([model], self.study.methods, [self.most])
        if not cells:
            return
        label = "predicted" if self.study.mode == "measure" else self.label
        title = f"{model}: work of each of {self.most} ranks in a step, {label}"
        busy = [of.shares(cell)["busy_s"] for cell in cells]
        rows = ((r, [b[r] * 1e3 if r < len(b) else None for b in busy]) for r in range(self.most))
        with self._figure(model, "stages", title, "method", "busy, ms", 1000) as axes:
            self._bars(axes, [cell["method"] for cell in cells], [(f"rank {r}", r, row) for r, row in rows])

    def _timeline(self, model, cell, name, words):
        """A row for every rank, and a box for every forward, backward and update, as long as it took. A box
        that is wide enough shows its micro-batch's number; beside each row stands the share in which the rank
        does nothing."""
        study, how = self.study, self.label
        trace = study.out.path / "work" / f"{name}.trace.json"
        if study.mode == "simulate" or not trace.exists():  # no step was recorded
            trace = study.out.file("work", f"{name}.trace.json")
            how = "predicted" if "measured" in cell else "simulated"
            order = study.out.path / "plans" / f"{name}.schedule"
            schedule = study.settings["schedule"]
            words += ["--schedule", order if schedule == "auto" else schedule, "--overlap-steps", "off"]
            words += ["--microbatches", cell["microbatches"], "--trace", trace]
            study.program.ask("simulate", *words, *words_of(study.settings, LINK))
        boxes = [e for e in json.loads(trace.read_text())["traceEvents"] if e.get("ph") == "X"]
        boxes = [e for e in boxes if e["cat"] in KINDS and e["dur"] > 0]
        if not boxes:
            return
        ranks, end = cell["ranks"], max(e["ts"] + e["dur"] for e in boxes) * 1e-3
        step = f"a step of {cell['microbatches']} micro-batches on {ranks} ranks by {cell['method']}"
        title, x = f"{model}: {step}, {how}", "time, ms (numbers: micro-batches)"
        with self._figure(model, "timeline", title, x, "rank", 1100, 190 + 34 * ranks, below=True) as axes:
            self._draw_boxes(axes, boxes, ranks, end)

    def _draw_boxes(self, axes, boxes, ranks, end):
        axes.grid(False)
        busy = [0] * ranks
        for kind, (label, colour) in KINDS.items():
            for e in (e for e in boxes if e["cat"] == kind):
                from_ms, ms, rank = e["ts"] * 1e-3, e["dur"] * 1e-3, e["tid"]
                if kind != "reduce":
                    busy[rank] += ms
                # An update takes a thousandth of a step, so it is drawn back from its end.
                wide = max(ms, end * 3 / 930) if kind == "step" else ms
                edges = {"color": colour, "edgecolor": "white", "linewidth": 0.5, "label": label}
                axes.barh(rank, wide, 0.8, from_ms + ms - wide, **edges)
                label = None
                number = str(e.get("args", {}).get("microbatch", ""))
                if kind in ("forward", "backward") and number and ms / end * 930 >= 7 * len(number) + 3:
                    axes.text(from_ms + ms / 2, rank, number, ha="center", va="center", fontsize=7)
        for rank in range(ranks):
            share = f"idle {(1 - busy[rank] / end) * 100:.0f} %"
            axes.text(end * 1.005, rank, share, va="center", fontsize=8)
        axes.set(xlim=(0, end), ylim=(ranks - 0.4, -0.6), yticks=range(ranks))

    def _losses(self, model):
        cells = self.find([model], self.study.methods, self.ranks)
        cells = [cell for cell in cells if len(cell.get("measured", {}).get("loss", ())) > 1]
        if not cells:
            return
        title = f"{model}: training loss, measured"
        with self._figure(model, "loss", title, "step", "loss (cross-entropy, nats)") as axes:
            for i, cell in enumerate(cells):
                # Equal curves cover each other: so the first is broad, and the others are dashed.
                x, y = ([point[name] for point in cell["measured"]["loss"]] for name in ("step", "loss"))
                label = f"{cell['method']} on {cell['ranks']}"
                axes.plot(x, y, linewidth=1.5 if i else 5, label=label, **_line(i))
