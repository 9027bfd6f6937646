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
    drawn, missing = {}, []
    try:
        import matplotlib

        if getattr(matplotlib, "__version_info__", ())[:2] >= LEAST:
            matplotlib.use("Agg")
            matplotlib.rcParams.update(STYLE)
            _Painter(study, cells, drawn, missing).draw()
        else:
            missing.append(OLD_PLOTS)
    except ImportError:
        missing.append(NO_PLOTS)
    if shutil.which("dot"):
        for model in study.models:
            _draw_graph(study, cells, model, drawn, missing)
    else:
        missing.append(NO_GRAPHS)
    return drawn, missing


def _shown(study, cells, model):
    """Returns the cell whose plan is drawn: of the first method that has one, on the most ranks."""
    return next(iter(of.find_all(cells, [model], study.methods, [max(study.ranks)])), None)


def _plan(study, cell):
    """Returns the words that name a cell's profile and plan."""
    name = of.name(cell["model"], cell["method"], cell["ranks"], study.mode)
    profile = study.profiles.path(cell["model"], cell["ranks"])
    return ["--profile", profile, "--plan", study.out.path / "plans" / f"{name}.json"], name


def _draw_graph(study, cells, model, drawn, missing):
    cell = _shown(study, cells, model)
    if cell is None:
        return
    dot, svg = (study.out.file("figures", f"model-{model}.{ending}") for ending in ("dot", "svg"))
    log = study.out.file("logs", "dot.log")
    try:
        study.program.ask("plan", *_plan(study, cell)[0], "--dot", dot)
        if study.children.run(["dot", "-Tsvg", str(dot), "-o", str(svg)], log):
            raise AntichainError(last_words(log))
        drawn.setdefault(model, {})["graph"] = f"figures/{svg.name}"
    except AntichainError as problem:
        missing.append(f"No graph of {model}: {problem}")


def _line(i):
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": DASHES[i % len(DASHES)]}


class _Painter:
    def __init__(self, study, cells, drawn, missing):
        self.study, self.cells, self.drawn, self.missing = study, cells, drawn, missing
        self.ranks, self.label = sorted(study.ranks), of.MODES[study.mode]

    def draw(self):
        straight = [method for method in self.study.methods if method in of.STRAIGHT]
        others = [method for method in self.study.methods if method not in of.STRAIGHT]
        # They have separate pictures, because ten bars a model can't be told apart.
        self._overview("overview", straight, "")
        self._overview("overview-replicas", others, ", with replicas")
        for model in self.study.models:
            self._speedups(model)
            self._stages(model)
            self._timeline(model)
            self._losses(model)

    @contextlib.contextmanager
    def _figure(self, model, kind, title, x, y, width=900, height=480, below=False):
        """Gives axes to draw on, and writes the picture, with the legend to the right of it or below."""
        import matplotlib.pyplot

        figure, axes = matplotlib.pyplot.subplots(figsize=(width / INCH, height / INCH), layout="constrained")
        axes.set(title=title, xlabel=x, ylabel=y)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#dddddd")
        axes.set_axisbelow(True)
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
            hatch = "" if colour < len(COLOURS) else "///"
            heights = [value or 0 for value in values]
            axes.bar(at, heights, width * 0.95, color=COLOURS[colour % len(COLOURS)], hatch=hatch, label=name)
        axes.set_xticks(range(len(groups)), groups, rotation=20 if len(groups) > 5 else 0)

    def _overview(self, kind, methods, more):
        most, models = self.ranks[-1], self.study.models
        if not of.find_all(self.cells, models, methods, [most]):
            return
        width = min(max(400 + 12 * len(models) * len(methods), 700), 1200)
        title = f"Speedup on {most} ranks, {self.label}{more}"
        series = []
        for method in methods:
            cells = [of.find(self.cells, model, method, most) for model in models]
            values = [cell and of.speedup(self.cells, cell) for cell in cells]
            series.append((method, of.METHODS.index(method), values))
        with self._figure(None, kind, title, "model", "speedup over one rank", width) as axes:
            self._bars(axes, models, series)

    def _speedups(self, model):
        if len(self.ranks) < 2 or not of.find_all(self.cells, [model], self.study.methods, self.ranks):
            return
        ends = [self.ranks[0], self.ranks[-1]]
        title = f"{model}, {self.label}"
        with self._figure(model, "speedup", title, "ranks", "speedup over one rank") as axes:
            axes.plot(ends, ends, color="#999999", linestyle=":", label="as many times as ranks")
            for method in self.study.methods:
                cells = of.find_all(self.cells, [model], [method], self.ranks)
                x, y = [cell["ranks"] for cell in cells], [of.speedup(self.cells, cell) for cell in cells]
                if cells:
                    i = of.METHODS.index(method)
                    axes.plot(x, y, marker=MARKS[i], label=method, **_line(i))
            axes.set_xticks(self.ranks)
            axes.set_ylim(0, self.ranks[-1] + 0.2)

    def _stages(self, model):
        """The difference to the longest bar of a method is imbalance."""
        most = self.ranks[-1]
        cells = of.find_all(self.cells, [model], self.study.methods, [most])
        if not cells:
            return
        label = "predicted" if self.study.mode == "measure" else self.label
        title = f"{model}: work of each of {most} ranks in a step, {label}"
        busy = [of.shares(cell)["busy_s"] for cell in cells]
        ranks = [(f"rank {r}", r, [b[r] * 1e3 if r < len(b) else None for b in busy]) for r in range(most)]
        with self._figure(model, "stages", title, "method", "busy, ms", 1000) as axes:
            self._bars(axes, [cell["method"] for cell in cells], ranks)

    def _boxes(self, cell):
        """Returns the boxes of a recorded step, or of the simulated one, and which it is."""
        words, name = _plan(self.study, cell)
        trace, how = self.study.out.path / "work" / f"{name}.trace.json", self.label
        if self.study.mode == "simulate" or not trace.exists():
            trace = self.study.out.file("work", f"{name}.trace.json")
            how = "predicted" if "measured" in cell else "simulated"
            schedule = self.study.settings["schedule"]
            order = self.study.out.path / "plans" / f"{name}.schedule"
            words += ["--microbatches", cell["microbatches"], "--overlap-steps", "off", "--trace", trace]
            words += ["--schedule", order if schedule == "auto" else schedule]
            self.study.program.ask("simulate", *words, *words_of(self.study.settings, LINK))
        return [e for e in json.loads(trace.read_text())["traceEvents"] if e.get("ph") == "X"], how

    def _timeline(self, model):
        """A row for every rank, and a box for every forward, backward and update, as long as it took. A box
        that is wide enough shows its micro-batch's number; beside each row stands the share in which the rank
        does nothing."""
        cell = _shown(self.study, self.cells, model)
        if cell is None:
            return
        try:
            boxes, how = self._boxes(cell)
        except AntichainError as problem:
            self.missing.append(f"No timeline of {model}: {problem}")
            return
        boxes = [e for e in boxes if e["cat"] in KINDS and e["dur"] > 0]
        if not boxes:
            return
        ranks, end = cell["ranks"], max(e["ts"] + e["dur"] for e in boxes) * 1e-3
        step = f"a step of {cell['microbatches']} micro-batches on {ranks} ranks by {cell['method']}"
        title = f"{model}: {step}, {how}"
        x, height = "time, ms (numbers: micro-batches)", 190 + 34 * ranks
        with self._figure(model, "timeline", title, x, "rank", 1100, height, below=True) as axes:
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
        cells = of.find_all(self.cells, [model], self.study.methods, self.ranks)
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
