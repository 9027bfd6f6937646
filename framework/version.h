// Returns the version of the library. Ranks of one job and modules loaded at run time must agree on it.
#pragma once

namespace antichain {

const char* version();

// Returns the git revision this was built from, "-dirty" where files differed from it; "unknown" outside of a
// repository.
const char* revision();

}  // namespace antichain
