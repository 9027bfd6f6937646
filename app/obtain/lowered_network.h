// This file turns the options of a network into its lowered graph.
#pragma once

#include "app/job/job.h"
#include "app/options/options.h"
#include "framework/graph.h"

namespace antichain {

// Returns the named model at one micro-batch, in the layouts and by the engines of the rank's device. Throws
// Error when the batch can't be divided evenly.
Graph lowered_network(const NetworkOptions&, Rank&);
// Does the same outside of any job, for a single rank.
Graph lowered_network(const NetworkOptions&, const MachineOptions&);

}  // namespace antichain
