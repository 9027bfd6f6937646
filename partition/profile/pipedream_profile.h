// PipeDream's profiles (graph.txt), read as its authors publish and read them.
//
//   node2 -- Conv2d(3, 64, kernel_size=(3, 3)) -- forward_compute_time=22.316, backward_compute_time=6.405,
//            activation_size=198246400.000, parameter_size=93184.000 [-- stage_id=0]      (one line)
//   <tab>node1 -- node2                                                                    node2 uses node1
//
// Milliseconds and bytes; an activation list [a; b; c] is summed. What the file means does not depend on the
// order of its lines, and neither does the Profile: nodes come in the topological order that always takes the
// node of smallest id (node2 before node10).
//
// Source: D. Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP 2019, and
// its code.
#pragma once

#include <string>

#include "partition/profile/profile.h"

namespace antichain {

// Times become whole nanoseconds, rounded once. A source whose description starts with "Input" gets role
// input and no times: what it took was loading data. A sink whose description starts with "__getitem__" is
// left out, once, as the published optimiser does: a node that only then becomes a sink stays. The model's
// name is the file's (of graph.txt: the folder's); ids are names (Profile::ids_are_names).
//
// Error with `origin` and line: a line cut off, an unknown, missing or repeated field, a time or size that is
// no number, negative, or too large to add up, an id twice, an edge to nowhere or to itself, a cycle, no node
// at all.
Profile profile_from_pipedream(const std::string& text, const std::string& origin);

}  // namespace antichain
