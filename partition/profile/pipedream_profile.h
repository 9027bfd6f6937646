// This file reads PipeDream's profiles (graph.txt) as their authors publish and read them.
//
//   node2 -- Conv2d(3, 64, kernel_size=(3, 3)) -- forward_compute_time=22.316, backward_compute_time=6.405,
//            activation_size=198246400.000, parameter_size=93184.000 [-- stage_id=0]      (one line)
//   <tab>node1 -- node2                                                                    node2 uses node1
//
// Times are milliseconds and sizes are bytes; an activation list [a; b; c] is summed. The order of the lines
// has no influence on the Profile: its nodes come in the topological order that always takes the smallest id
// next (node2 before node10).
//
// Source: D. Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP 2019, and
// its code.
#pragma once

#include <string>

#include "partition/profile/profile.h"

namespace antichain {

constexpr double default_weight_share = 0.5;

// Times become whole nanoseconds, rounded once. A source whose description starts with "Input" gets the role
// input and no times, because its time was that of loading data. A sink whose description starts with
// "__getitem__" is left out, as the published optimiser does. This happens once: a node that becomes a sink
// thereby stays. The model is named after the file (or after the folder of a graph.txt), and the ids become
// names (Profile::ids_are_names).
//
// The file has one backward time for a node. Where the node has more than 10,000 bytes of parameters, the
// share `weight_share` (0 to 1) of it is the weight half's; the rest is the input half's.
//
// Throws Error with `origin` and the line for a line that is cut off, an unknown, missing or repeated field,
// a time or size that is no number, negative, or too large to add up, a repeated id, an edge to a missing
// node or to itself, a cycle, and a file without nodes.
Profile profile_from_pipedream(const std::string& text, const std::string& origin,
                               double weight_share = default_weight_share);

}  // namespace antichain
