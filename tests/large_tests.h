// Some tests run only when they are asked for.
#pragma once

#include <cstdlib>

namespace antichain {

// Returns true where ANTICHAIN_LARGE_TESTS is set. Then tests take all networks, under everything. Otherwise
// they leave out networks that take gigabytes or minutes, and large ones made of the same blocks as smaller
// ones.
inline bool large_tests() { return std::getenv("ANTICHAIN_LARGE_TESTS") != nullptr; }

}  // namespace antichain
