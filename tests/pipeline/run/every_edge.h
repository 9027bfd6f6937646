// A network of 16 nodes stands for large ones where a test asks how its nodes are cut, ordered, sent and
// saved, and not what they compute. It has every kind of edge, on images of 8 x 8 pixels:
//
//   stem ─ stem.norm ─┬─ narrow ─┐                     ┌─ aux.flatten ─ aux.fc ─ aux.loss
//                     ├─ wide ───┴─ branches ─ norm ───┴─ conv ─ skip ─ pool ─ flatten ─ dropout ─ fc ─ loss
//                     ├─────────────────────────┘                 │
//                     └───────────────────────────────────────────┘
#pragma once

#include "models/options.h"

namespace antichain::test {

Graph every_edge(const ModelOptions&);  // aux: 0 stands for 0.3

// Makes every_edge, a network of shared_weights.h, or a model, by its name.
Graph network(std::string_view name, const ModelOptions&);

}  // namespace antichain::test
