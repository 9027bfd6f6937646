// `antichain profile --roofline` prints this: which kinds of operators take a step's time, and how near each
// comes to the roofs of this machine (pipeline/measure/roofs.h).
#pragma once

#include <string>

#include "pipeline/measure/roofs.h"

namespace antichain {

// Returns a network of large products of matrices, from which measure_roofs takes the FLOPs a second.
Graph large_products(const Backend&, Precision, int threads);

// Returns a table of the kinds of operators and of the update, by their time in a step. The profile must be
// that of the graph. FLOPs are counted by the operators' definitions, so Winograd's algorithm may exceed a
// roof, and so may tensors that lie in a cache.
std::string describe(const Graph& lowered, const Profile&, int microbatches, const Roofs&);

}  // namespace antichain
