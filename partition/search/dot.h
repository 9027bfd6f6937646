// These functions draw plans and antichain DAGs for Graphviz (dot -Tsvg plan.dot > plan.svg).
//
//   ╭─────────────────────────────────────╮
//   │ (conv1)  stage 0 · rank 0 · 12.3 ms │   a stage is a box of one colour; after eight, colours repeat
//   │ (relu1)                             │   with another kind of frame
//   ╰────┃────────────────────────────────╯
//        ┃ 1.50 MiB                           a tensor that crosses a cut
//   ╭────┃────────────────────────────────╮
#pragma once

#include <string>

#include "partition/plan/plan.h"
#include "partition/search/antichain_dag.h"

namespace antichain {

// Draws the network with its stages coloured. Inputs are outside, because no stage owns them. Throws Error
// when the plan is not valid for the network.
std::string to_dot(const Plan&, const Profile&);

// Draws one node a state, with its antichain and the work of its down-set, and an edge where one node more is
// added. It draws the first `max_states` of the state sequence and notes how many it left out.
std::string to_dot(const AntichainDag&, const Profile&, int max_states);

}  // namespace antichain
