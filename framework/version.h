// The version of the library; ranks of one job and modules loaded at run time must agree on it.
#pragma once

namespace antichain {

const char* version();

// The git revision this was built of, "-dirty" where files differed from it; "unknown" outside of a
// repository.
const char* revision();

}  // namespace antichain
