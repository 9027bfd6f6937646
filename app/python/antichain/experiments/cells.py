"""A cell is one entry of a study: one model, planned by one method, on a number of ranks, in one mode, and
its results. It is a dictionary, and a finished one is a file, so that an interrupted sweep can go on:

  format      "antichain cell 1"
  mode        "simulated", "rehearsed" or "measured"
  model, method, ranks
  refusal     why there is no plan, or why it can't run; then there is nothing else
  microbatch, microbatches, plan_hash, stages ("8", or with replicas "3+5x1"), planning_s, one_device_s,
  slowest_s, imbalance, time_scale, boundary_bytes, memory_bytes
  predicted   {step_s, bubble_share, busy_s by rank}
  rehearsed   the same, where it was rehearsed
  measured    {step_s, steps, data, starved_share, loss: [{step, loss}], test_accuracy}, where it was trained
"""

import itertools
import json

from antichain.experiments.start import BAD_INPUT, refusal

FORMAT = "antichain cell 1"
MODES = {"simulate": "simulated", "rehearse": "rehearsed", "measure": "measured"}
STRAIGHT = ("antichain", "pipedream", "block", "hashrate", "cudasize", "handsplit", "uniform")
METHODS = (*STRAIGHT, "antichain+replicas", "pipedream+replicas", "data-parallel")  # as a report's columns
PAPER_MODELS = (  # of its Table 1
    *("vgg16", "resnet18", "resnet50", "resnet101", "alexnet", "resnext50", "resnext101", "inception_v3"),
    *("densenet121", "squeezenet1_0"),
)
DOUBTFUL_SHARE = 0.2  # of the time that a rank was ready but had no core (pipeline/host/core_time.h)
FIGURES = ("microbatch", "microbatches", "planning_s", "one_device_s", "imbalance")


def name(model, method, ranks, mode):
    """Returns the name of a cell's files: "resnet101-antichain-8-simulate"."""
    return f"{model}-{method}-{ranks}-{mode}"


def read(file):
    """Returns the cell of a file. Throws AntichainError naming a file that is none, or is damaged."""
    try:
        cell = json.loads(file.read_text())
        if cell["format"] != FORMAT or cell["mode"] not in MODES.values():
            raise ValueError("its format or its mode is another")
        cell["model"] + cell["method"], cell["ranks"] + 1
        if "refusal" not in cell:
            [cell[field] + 0 for field in FIGURES]
            kinds = ("predicted", "rehearsed", "measured")
            own = kinds[list(MODES.values()).index(cell["mode"])]
            [1 / cell[kind]["step_s"] for kind in kinds if kind == own or kind in cell]
            cell["stages"] + "", cell["predicted"]["bubble_share"] + sum(cell["predicted"]["busy_s"])
    except (OSError, ValueError, LookupError, TypeError, ArithmeticError) as problem:
        sentence = f"{file} is no cell of a study ({problem}): delete it, and start the same command again"
        raise refusal(sentence, BAD_INPUT) from problem
    return cell


def find(cells, model, method, ranks):
    """Returns the cell that has results, or None."""
    for cell in cells:
        if (cell["model"], cell["method"], cell["ranks"]) == (model, method, ranks):
            return None if "refusal" in cell else cell
    return None


def find_all(cells, models, methods, ranks):
    """Returns the cells that have results, of every combination in this order."""
    return [cell for key in itertools.product(models, methods, ranks) if (cell := find(cells, *key))]


def step_s(cell):
    """Returns the time of a step in the cell's own mode."""
    return cell.get("measured", cell.get("rehearsed", cell["predicted"]))["step_s"]


def over_predicted(cell):
    """Returns by how much a step took longer than predicted, in per cent."""
    return (step_s(cell) / cell["predicted"]["step_s"] - 1) * 100


def shares(cell):
    """Returns the figures that say how the time divides: rehearsed in that mode, else predicted."""
    return cell.get("rehearsed", cell["predicted"]) if cell["mode"] == "rehearsed" else cell["predicted"]


def starved(cell):
    return cell.get("measured", {}).get("starved_share", 0) > DOUBTFUL_SHARE


def one_rank_of(cells, cell):
    """Returns the measured one-rank cell that a measured cell is compared with: that of the same method, else
    of any other, because on one rank all methods do the same. None where the study has none."""
    if "measured" not in cell:
        return None
    ones = [c for c in cells if c["model"] == cell["model"] and c["ranks"] == 1 and "measured" in c]
    return next((one for one in ones if one["method"] == cell["method"]), ones[0] if ones else None)


def speedup(cells, cell):
    """Returns the speedup over that cell's measured step, else over the predicted step of one rank."""
    one = one_rank_of(cells, cell)
    return (one["measured"]["step_s"] if one else cell["one_device_s"]) / step_s(cell)
