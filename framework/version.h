// The version of the library; ranks of one job and modules loaded at run time must agree on it.
#pragma once

namespace antichain {

const char* version();

}  // namespace antichain
