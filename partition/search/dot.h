// Plans and antichain DAGs as pictures, for Graphviz (dot -Tsvg plan.dot > plan.svg).
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

// The network, its stages coloured; inputs outside, because no stage owns them. Error when the plan is not
// valid for it.
std::string to_dot(const Plan&, const Profile&);

// One node a state: its antichain and the work of its down-set; an edge where one node more is added. Only
// the first `max_states` of the state sequence, and a note that says how many were left out.
std::string to_dot(const AntichainDag&, const Profile&, int max_states);

}  // namespace antichain
