// This is what one sample adds to the loss of a step, rounded to float32. A double holds the sum of a step's
// terms exactly where their exponents and the bits of their number span at most 29 bits. Then the sum does
// not depend on which rank adds up which terms, where a network has several losses and the cut separates
// them. The last bits of a loss that diverges (1e31 beside 1) may depend on it; weights never do.
#pragma once

namespace antichain {

inline double weighted_loss(double weight, float loss) { return double(float(weight * loss)); }

}  // namespace antichain
