// This rule judges how exact an engine is: it says how many times as far from double precision its float32
// may be as PyTorch's float32 is. tests/models/exactness_test.cpp holds the models to it, and `antichain
// check` holds imported networks to it.
#pragma once

namespace antichain {

inline constexpr double times_pytorchs_error = 2;
// This limit applies where Winograd computes, because its transforms add and subtract what then cancels. It
// also applies on a CPU without AVX-512 beside PyTorch on one with it: the engine's sums then have half as
// many lanes as PyTorch's, and each lane sums twice as many terms.
inline constexpr double times_pytorchs_error_at_most = 4;

}  // namespace antichain
