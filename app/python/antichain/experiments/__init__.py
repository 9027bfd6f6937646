"""The studies of the publication that Antichain follows, each by one command:

  python3 -m antichain.experiments table1    how long partitioning takes, beside the publication's Table 1
  python3 -m antichain.experiments speedup   models by methods on ranks: a sweep, and its report
  python3 -m antichain.experiments sweep     the same without the report
  python3 -m antichain.experiments report    the tables and figures of a folder that a sweep filled

docs/experiments.md describes them. They start the program `antichain`, with its ranks, and need Python's
standard library. Figures need matplotlib, and without it the report has only tables.
"""
