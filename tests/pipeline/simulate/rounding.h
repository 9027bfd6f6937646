// Simulated times may differ by this share.
#pragma once

namespace antichain::test {

// Sums of a few hundred doubles in different orders differ in the last bits.
constexpr double rounding = 1e-9;

}  // namespace antichain::test
