// The rule by which the exactness of an engine is judged: how many times as far from double precision its
// float32 may be as PyTorch's float32 is. tests/models/exactness_test.cpp holds the models to it, and
// `antichain check` imported networks.
#pragma once

namespace antichain {

inline constexpr double times_pytorchs_error = 2;
// Applies where Winograd computes, because its transforms add and subtract what then cancels, and where the
// engine's sums may have half as many lanes as PyTorch's had and are twice as long in each: on a CPU without
// AVX-512 beside PyTorch on one with it.
inline constexpr double times_pytorchs_error_at_most = 4;

}  // namespace antichain
