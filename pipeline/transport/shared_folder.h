// This check finds out whether a folder is the same one for all ranks. On a cluster a path may lead to
// another disk on every host, or a mount may be missing on one; then what one rank writes is missing where
// another looks for it.
#pragma once

#include <string>

#include "pipeline/transport/job.h"

namespace antichain {

// Collective: every rank writes a small file into the folder and looks for rank 0's, and rank 0 looks for all
// of theirs, for so many seconds, because file servers tell of a new file late. `folder` is this rank's path.
// Throws Error on every rank, naming the first rank and its host, when one can't write there or does not see
// what another wrote.
void check_shared_folder(const std::string& folder, Job&, double patience_s = 5);

}  // namespace antichain
