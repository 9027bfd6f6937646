"""The figures of the publication that the experiments follow: how long its methods took to partition ten
networks (its Table 1, in published_table1.csv, which says where it is from), and the speedups that it
reports."""

import csv
import pathlib

SPEEDUPS = {4: 3.4, 8: 3.76}  # over one GPU, of training on CIFAR-10 by its own method, by GPUs


def table1():
    """Returns the rows by (model, devices). handsplit_min is text, because it may be ">60"."""
    lines = (pathlib.Path(__file__).parent / "published_table1.csv").read_text().splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return {
        (row["model"], int(row["gpus"])): {
            "handsplit_min": row["handsplit_min"], "cudasize_s": float(row["cudasize_s"]),
            "hashrate_s": float(row["hashrate_s"]), "own_method_s": float(row["paper_s"]),
        }
        for row in rows
    }
