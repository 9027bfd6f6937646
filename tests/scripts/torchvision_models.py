#!/usr/bin/env python3
"""Tries every classification model of torchvision; docs/torchvision.csv is the table.

  tests/scripts/torchvision_models.py [--program build/antichain] [--only check|bits] [--trained 1000]
    [--compared 60] [--out docs/torchvision.csv] [MODEL …]

An image has 64 x 64 pixels, so that the last batch norms see more than one, or as few as the model takes,
where that is more.
"""

from imported_models import Models, torch, torchvision

# Of Inception-v3, the auxiliary head needs 299 x 299; it is left out.
OPTIONS = {"googlenet": {"init_weights": False}, "inception_v3": {"init_weights": False, "aux_logits": False}}
# A vision transformer takes images of one size, here of two by two patches.
VIT = {f"vit_{name}": 2 * int(name[2:]) for name in ("b_16", "b_32", "l_16", "l_32", "h_14")}
SIZES = {"inception_v3": 128, "maxvit_t": 224, **VIT}


class Torchvision(Models):
    def names(self):
        listed = torchvision.models.list_models(module=torchvision.models)
        return sorted(name for name in listed if "raft" not in name)

    def size_of(self, name):
        return SIZES.get(name, 64)

    def module_of(self, name, **options):
        torch.manual_seed(0)
        image = {"image_size": self.size_of(name)} if name in VIT else {}
        options = {**OPTIONS.get(name, {}), **image, **options}
        return torchvision.models.get_model(name, weights=None, **options)


if __name__ == "__main__":
    Torchvision().try_them(__doc__, "torchvision.csv")
