"""Profiles, plans and simulations as plain objects: what the program's JSON files say, numbers as numpy
arrays.

`data` is the file's content; docs/planning.md has the fields. Times are in seconds.
"""

import contextlib
import html
import json
import pathlib
import shutil
import subprocess
import tempfile
import types

import numpy

from antichain import program
from antichain.error import AntichainError
from antichain.files import json_of


class JsonFile:
    """A JSON file of the program, by its content."""

    part = None  # a field that only such files have

    def __init__(self, data):
        self.data = data

    @classmethod
    def read(cls, file):
        try:
            data = json.loads(pathlib.Path(file).read_text())
        except (OSError, TypeError, ValueError) as problem:
            raise AntichainError(f"can't read {file}: {problem}") from problem
        if not isinstance(data, dict) or cls.part not in data:
            raise AntichainError(f"{file} is no {cls.__name__.lower()}: it has no {cls.part}")
        return cls(data)

    def write(self, file):
        try:
            pathlib.Path(file).write_text(self.text())
        except (OSError, TypeError, ValueError) as problem:
            raise AntichainError(f"can't write {file}: {problem}") from problem

    def text(self):
        return json.dumps(self.data, indent=1) + "\n"


def table(heads, rows):
    def line(tag, cells):
        return "<tr>" + "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    return "<table>" + line("th", heads) + "".join(line("td", row) for row in rows) + "</table>"


class Profile(JsonFile):
    """The costs of every node of a network: a profile.json."""

    part = "nodes"

    def text(self):
        head = {key: value for key, value in self.data.items() if key != "nodes"}
        return json_of(head, nodes=self.data["nodes"])

    @property
    def names(self):
        return [node["name"] for node in self.data["nodes"]]

    def column(self, field):
        """Returns a field of all nodes, such as "output_bytes"."""
        return numpy.array([node[field] for node in self.data["nodes"]])

    @property
    def forward_s(self):
        return self.column("forward_us") * 1e-6

    @property
    def backward_s(self):
        return (self.column("backward_input_us") + self.column("backward_weight_us")) * 1e-6

    def __repr__(self):
        return (
            f"Profile of {self.data['model']}: {len(self.names)} nodes, "
            f"micro-batches of {self.data['microbatch']}, forward {self.forward_s.sum() * 1e3:.2f} ms, "
            f"backward {self.backward_s.sum() * 1e3:.2f} ms"
        )

    def _repr_html_(self):
        columns = {
            "node": self.names,
            "operator": self.column("op"),
            "forward, ms": numpy.round(self.forward_s * 1e3, 3),
            "backward, ms": numpy.round(self.backward_s * 1e3, 3),
            "output, MiB": numpy.round(self.column("output_bytes") / 2**20, 3),
            "parameters, MiB": numpy.round(self.column("param_bytes") / 2**20, 3),
        }
        return html.escape(repr(self)) + table(columns, zip(*columns.values()))


class Plan(JsonFile):
    """A network cut into stages: a plan.json. `profile` is what it was made for."""

    part = "stages"

    def __init__(self, data, profile=None):
        super().__init__(data)
        self.profile = profile

    @property
    def stages(self):
        """Returns the names of each stage's nodes."""
        return [stage["names"] for stage in self.data["stages"]]

    def column(self, field):
        """Returns a field of all stages, such as "memory_bytes"."""
        return numpy.array([stage[field] for stage in self.data["stages"]])

    @property
    def compute_s(self):
        return self.column("compute_ms") * 1e-3

    @property
    def step_s(self):
        return self.data["step_ms"] * 1e-3

    def __repr__(self):
        return (
            f"Plan for {self.data['model']}: {len(self.stages)} stages, method {self.data['method']}, "
            f"predicted step {self.step_s * 1e3:.2f} ms"
        )

    def _repr_html_(self):
        def row(stage):
            names, times = stage["names"], [round(stage[f"{part}_ms"], 3) for part in ("forward", "backward")]
            nodes = f"{len(names)}: {names[0]} to {names[-1]}"
            ranks = ", ".join(map(str, stage["ranks"]))
            return [stage["stage"], ranks, nodes, *times, round(stage["memory_bytes"] / 2**20, 1)]

        heads = ["stage", "ranks", "nodes", "forward, ms", "backward, ms", "memory, MiB"]
        return html.escape(repr(self)) + table(heads, map(row, self.data["stages"]))

    def _written(self, name, **options):
        """Returns what `antichain plan` writes of this plan to the file that the option `name` names."""
        with _files(self.profile, self) as files:
            out = files.folder / "made"
            given = {"profile": files.profile, "plan": files.plan, name: out, **options}
            program.run("plan", listener=program.print_warning, **given)
            return out.read_text()

    def text_for(self, runtime):
        """Returns the plan as another runtime reads it: "torch" (torch.distributed.pipelining), "deepspeed"
        or "megatron". Throws AntichainError where that runtime can't cut so."""
        return self._written("out", for_=runtime)

    def _repr_svg_(self):
        """Returns the network coloured by stage, drawn by Graphviz; None where that is absent."""
        if self.profile is None or not shutil.which("dot"):
            return None
        said = {"capture_output": True, "text": True, "check": True}
        return subprocess.run(["dot", "-Tsvg"], input=self._written("dot"), **said).stdout


class Simulation(JsonFile):
    """A training step as it is predicted. Times of ranks are arrays."""

    part = "step_s"

    def __init__(self, data, page=""):
        super().__init__(data)
        self.page = page  # the timeline, for a browser

    @property
    def step_s(self):
        return self.data["step_s"]

    @property
    def bubble_share(self):
        return self.data["bubble_share"]

    def column(self, field):
        """Returns a field of all ranks, such as "busy_s" or "peak_memory_bytes"."""
        return numpy.array(self.data[field])

    def __repr__(self):
        return (
            f"Step of {self.data['model']} on {self.data['ranks']} ranks: {self.step_s * 1e3:.2f} ms, "
            f"bubble share {100 * self.bubble_share:.1f} %"
        )

    def _repr_html_(self):
        style = "width: 100%; height: 480px; border: 0"
        return f'<iframe srcdoc="{html.escape(self.page)}" style="{style}"></iframe>'


@contextlib.contextmanager
def _files(profile, plan=None):
    """Gives the files that the program reads, and a folder that is removed in the end."""
    if profile is None:
        raise AntichainError("a profile is missing: give a Profile or its file, and Plan(data, profile)")
    with tempfile.TemporaryDirectory() as held:
        files = types.SimpleNamespace(folder=pathlib.Path(held), profile=profile, plan=plan)
        for name, given in (("profile", profile), ("plan", plan)):
            if isinstance(given, JsonFile):
                setattr(files, name, files.folder / f"{name}.json")
                given.write(getattr(files, name))
        yield files


def _given(options):
    return {name: value for name, value in options.items() if value is not None}


def plan(profile, runtime=None, **options):
    """Cuts a network into stages by `antichain plan`. `profile` is a Profile, or a file; options are those of
    the command: plan(profile, stages=4, schedule="zb-h1", memory_bytes="16GiB"). With a `runtime`, a name
    that Plan.text_for takes, it cuts only where that runtime can."""
    with _files(profile) as files:
        usual = {"json": files.folder / "made.json", "listener": program.print_warning}
        if runtime is not None:
            usual |= {"for_": runtime, "out": files.folder / "text"}
        options = usual | _given(options)
        made = program.run("plan", profile=files.profile, **options).results
        return Plan(made, profile if isinstance(profile, Profile) else Profile.read(profile))


def simulate(profile, plan=None, **options):
    """Predicts a training step by `antichain simulate`, of a Plan (or a file), or of the plan that the
    command makes itself: simulate(profile, plan, schedule="1f1b", microbatches=16)."""
    with _files(profile, plan) as files:
        usual = {"json": files.folder / "made.json", "html": files.folder / "made.html"}
        options = usual | {"listener": program.print_warning} | _given(options)
        made = program.run("simulate", profile=files.profile, plan=files.plan, **options).results
        return Simulation(made, pathlib.Path(options["html"]).read_text())
