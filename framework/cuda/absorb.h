// Absorbs the statistics of all batch norms of a stage in one launch, because there are as many as
// convolutions and each has a few hundred numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "framework/backend.h"
#include "framework/cuda/launch.h"

namespace antichain::cuda {

constexpr uint32_t longest_running_part = 256;  // channels

// A RunningPart is a run of one node's channels. All that it points to lies on the device.
struct RunningPart {
  float *mean = nullptr, *variance = nullptr;  // running
  int32_t* batches = nullptr;                  // counted by the node's first part; elsewhere nullptr
  const float* const* statistics = nullptr;    // each micro-batch's mean, then its variance
  uint32_t first = 0, channels = 0;
  int microbatches = 0;
  RunningAverages rule;
};

// Takes one micro-batch's statistics of a channel. The operations and their order are the CPU's.
ANTICHAIN_ANYWHERE inline void take_statistics(const RunningAverages& rule, float mean, float variance,
                                               float& running_mean, float& running_variance) {
  running_mean = (1 - rule.momentum) * running_mean + rule.momentum * mean;
  running_variance = (1 - rule.momentum) * running_variance + rule.momentum * (variance * rule.unbias);
}

// Returns nullptr where there are no nodes.
// Nodes whose kernels keep no running averages absorb their statistics by themselves, behind the launch.
std::unique_ptr<Absorption> absorb_in_one_launch(const Context&, std::vector<Absorbed>);

void absorb(Stream, const RunningPart* parts, int64_t count);

}  // namespace antichain::cuda
