#!/usr/bin/env python3
"""Tries timm 1.0.9: the first model by timm.list_models() of each of its first 40 families, which are the
files of timm/models, as they are made (pretrained=False) and on images of their usual size; docs/timm.csv is
the table. It needs timm and torch 2.6 or later.

  tests/scripts/timm_models.py [--program build/antichain] [--only check|bits] [--trained 100]
    [--compared 100] [--out docs/timm.csv] [FAMILY …]

"First losses" says whether those of three steps are within four times PyTorch's own error in float32, or
within 1e-5, and if not, by how many times they are off. With batch norm over two samples rounding grows
without such a bound.
"""

import functools
import json
import pathlib
import sys

from imported_models import COLUMNS, Models, float32_error_of_losses, torch

try:
    import timm
    from timm.models import _registry
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

FAMILIES = 40


class Timm(Models):
    key, trained, compared = "family", 100, 100
    columns = ["family", *COLUMNS[:8], "first losses", *COLUMNS[8:]]

    @functools.cached_property
    def first(self):
        """The first model of each family, by the family's name."""
        first = {}
        for model in timm.list_models():
            first.setdefault(_registry._model_to_module[model], model)
        return dict([*first.items()][:FAMILIES])

    def names(self):
        return self.first

    def model(self, family):
        return self.first[family]

    def size_of(self, family):
        return timm.get_pretrained_cfg(self.first[family]).input_size[-1]

    def module_of(self, family, **options):
        torch.manual_seed(0)
        return timm.create_model(self.first[family], pretrained=False, **options)

    def attempt(self, family, folder, *options):
        line, folder = super().attempt(family, folder, *options), pathlib.Path(folder)
        if "losses off by" in line:
            ours = json.loads((folder / "errors.json").read_text())["losses"]
            theirs = float32_error_of_losses(folder)[:3]
            of = max(ours[f"step {i + 1}"] / max(4 * error, 1e-5) for i, error in enumerate(theirs))
            normed = '"op": "batch_norm"' in (folder / "graph.json").read_text()
            line["first losses"] = "within" if of <= 1 else f"{of:.2g}{' (batch norm)' if normed else ''}"
        return line


if __name__ == "__main__":
    Timm().try_them(__doc__, "timm.csv")
