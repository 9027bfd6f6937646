"""Repeats the publication's Table 1, which says how long partitioning takes, and sets both side by side."""

import json
import statistics

from antichain.error import AntichainError
from antichain.experiments import published
from antichain.experiments.document import Document, counted, literal
from antichain.experiments.start import is_refusal
from antichain.experiments.study import Profiles

METHODS = "handsplit", "cudasize", "hashrate", "antichain"
HOW_TIMED = (
    "Here: time of one core from the profile's text to the plan, the median of three processes; objective"
    " compute, one device a stage. Published: seconds, but for handsplit, which is minutes of a person."
)


def time_methods(program, children, out, settings, models, devices):
    """Returns a row for each model and number of devices, as table1.json has it, and the refusals, a sentence
    each."""
    rows, refusals, theirs = [], [], published.table1()
    profiles = Profiles(program, children, out, settings, {})
    for model in models:
        profile = profiles.profile(model, 1)
        # A profile that can't be read ends the experiment.
        program.ask("simulate", "--profile", profile, "--stages", 1)
        for count in devices:
            children.check()
            row = {"model": model, "devices": count}
            for method in METHODS:
                try:
                    row[method] = _time(program, out, profile, method, count)
                except AntichainError as refused:
                    if not is_refusal(refused.code):
                        raise
                    refusals.append(f"{model} on {counted(count, 'device')} by {method}: {refused}")
            if (model, count) in theirs:
                row["published"] = theirs[model, count]
                if "antichain" in row:
                    row["times_as_fast"] = row["published"]["own_method_s"] / row["antichain"]["planning_s"]
            rows.append(row)
    return rows, refusals


def _time(program, out, profile, method, devices):
    plan, seconds = out.file("work", "plan.json"), []
    words = ["simulate", "--profile", profile, "--stages", devices, "--method", method]
    words += ["--objective", "compute"]
    for _ in range(3):
        step = json.loads(program.ask(*words, "--write-plan", plan, "--json", "-"))
        seconds.append(step["reading_s"] + step["planning_s"])
    made = json.loads(plan.read_text())
    return {
        "planning_s": statistics.median(seconds), "slowest_stage_s": made["bottleneck_ms"] * 1e-3,
        "proved_optimal": made["proved_optimal"],
    }


def _short(x):
    """Returns three digits: "14.6", "0.05"; and of larger numbers the whole ones."""
    return f"{x:.3g}" if x < 100 else f"{x:,.0f}"


def _ms(row, method, field="planning_s"):
    return _short(row[method][field] * 1e3) if method in row else "-"


def _theirs(row, field):
    value = row.get("published", {}).get(field, "-")
    return f"{value:.2f}" if isinstance(value, float) else value


def grids(rows):
    """Returns three tables, narrow enough for a terminal and for paper: title, header, rows."""
    own = ["model", "devices", "published\ns", "antichain\nms", "times\nas fast", "proved\noptimal"]
    simple = ["model", "devices", "handsplit\npubl. min", "here\nms", "cudasize\npubl. s", "here\nms"]
    simple += ["hashrate\npubl. s", "here\nms"]
    tables = [
        ("The publication's own method, and antichain here", own, []),
        ("The methods it compares with, published and here", simple, []),
        ("What the plans are worth: the slowest stage, ms a micro-batch", ["model", "devices", *METHODS], []),
    ]
    for row in rows:
        key = [row["model"], str(row["devices"])]
        proved = {True: "yes", False: "no", None: "-"}[row.get("antichain", {}).get("proved_optimal")]
        ratio = _short(row["times_as_fast"]) if "times_as_fast" in row else "-"
        tables[0][2].append([*key, _theirs(row, "own_method_s"), _ms(row, "antichain"), ratio, proved])
        fields = {"handsplit": "handsplit_min", "cudasize": "cudasize_s", "hashrate": "hashrate_s"}
        pairs = [(_theirs(row, field), _ms(row, method)) for method, field in fields.items()]
        tables[1][2].append(key + [text for pair in pairs for text in pair])
        tables[2][2].append(key + [_ms(row, method, "slowest_stage_s") for method in METHODS])
    return tables


def beside_the_publication(rows):
    ratios = [row["times_as_fast"] for row in rows if "times_as_fast" in row]
    if not ratios:
        return "The publication has no row for these models and devices."
    least, most, mean = map(_short, (min(ratios), max(ratios), statistics.geometric_mean(ratios)))
    return (
        f"antichain, which is exact, plans {least} to {most} times as fast as the publication says of its own"
        f" method, {mean} in the geometric mean of {counted(len(ratios), 'row')}; profiles and machines are"
        " not the same."
    )


def report(rows, refusals, source):
    """Returns the tables, and the comparison with the publication at the end."""
    document = Document("Table 1: partitioning time")
    for title, header, lines in grids(rows):
        document.heading(title)
        document.table(header, [[literal(line[0]), *line[1:]] for line in lines], keys=2)
    for sentence in (*(f"-: {refusal}" for refusal in refusals), f"{HOW_TIMED} {source}"):
        document.paragraph(literal(sentence))
    document.paragraph(beside_the_publication(rows))
    return document
