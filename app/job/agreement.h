// These checks make sure that all ranks of a job have the same program, network and data before they compute
// together. Each check is collective. It refuses on every rank, in one sentence that names the rank, its
// host, the difference and what helps.
#pragma once

#include <string>

#include "app/job/job.h"
#include "data/data_set.h"
#include "framework/graph.h"

namespace antichain {

// Checks that the ranks lower the network to the same layouts and choose the same kernels for it. Rank 0
// warns where only the processors' names differ, which can change last bits, and says in one line what
// --cpu-isa selected.
void check_same_kernels(const Rank&, const MachineOptions&, const Graph& lowered);

// Checks that the ranks read the same data: sets, sizes, contents, mean and deviation, test images included.
// Ranks that are threads share their data, so nothing is compared. `where` is the folder or file that the
// hint names.
void check_same_data(const Rank&, const DataSplits&, const std::string& where);

}  // namespace antichain
