// What all ranks of a job must have alike, besides their options, before they compute anything together. Each check is
// collective and refuses on every rank in one sentence that names rank, host, what differs and what helps.
#pragma once

#include <string>

#include "app/job.h"
#include "data/data_set.h"
#include "framework/graph.h"

namespace antichain {

// That the ranks lower the network to the same layouts and choose the same kernels for it. Rank 0 warns where only the
// processors' names differ, which can change last bits, and says in one line what --cpu-isa came to.
void check_same_kernels(const Rank&, const MachineOptions&, const Graph& lowered);

// That they read the same data: sets, sizes, contents, mean and deviation, test images included. What ranks that are threads
// share is not compared. `where` is the folder or file, for the hint.
void check_same_data(const Rank&, const DataSplits&, const std::string& where);

// Both numbers of every channel with all their bits, as text.
std::string describe(const Normalisation&);

}  // namespace antichain
