// Whether a folder is one and the same for all ranks: on a cluster a path may lead to another disk on every
// host, or a mount may be missing on one. What one rank wrote there would then be missing where another looks
// for it.
#pragma once

#include <string>

#include "pipeline/transport.h"

namespace antichain {

// Collective. Every rank writes a small file into the folder, which is there for rank 0, looks for rank 0's,
// and rank 0 for all of them: for so many seconds, because file servers tell of a new file late. `folder` is
// this rank's path. Error on every rank, naming the first rank and its host, when one can't write there or
// does not see what another wrote.
void check_shared_folder(const std::string& folder, Transport&, double patience_s = 5);

}  // namespace antichain
