// An offence: the first number of a training step that is infinite or not a number (NaN), by the place that
// made it.
//
// First is by micro-batch, then forward before backward, then in the order of the nodes, however the model is
// cut and the schedule interleaves: a tensor can only spoil what comes later in this order, so the smallest
// offence of all ranks is the cause and the others are its consequences.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/graph.h"

namespace antichain {

struct Offence {
  enum class Phase { forward, backward, update };
  enum class What { output, parameter, statistics, input_gradient, weight_gradient };

  int microbatch = 0;  // of phase update: none, and later than all
  Phase phase = Phase::forward;
  NodeId node = 0;
  What what = What::output;
  int index = 0;  // of the input or parameter
  int rank = 0;

  std::strong_ordering operator<=>(const Offence&) const;
  bool operator==(const Offence& other) const { return (*this <=> other) == 0; }
};

// What one rank found in one step. `bad` says that the step must not count: its loss, a statistic or a
// gradient of a weight is not finite; none of these depends on how the model is cut. `first` may be there
// without it: a NaN that a ReLU swallowed.
struct NumberReport {
  bool bad = false;
  std::optional<Offence> first;

  void note(const Offence& offence) {
    if (!first || offence < *first) first = offence;
  }
};

// Of all ranks, in any order: the first offence, if any rank's report is bad.
std::optional<Offence> first_offence(const std::vector<NumberReport>&);

std::string to_text(const NumberReport&);
NumberReport report_from_text(const std::string&);

// "step 5, micro-batch 2: the output of node layer1.0.conv1 (rank 0) is not finite". Steps count from 1, as
// in metrics.
std::string describe(const Offence&, const Graph&, int64_t step);

}  // namespace antichain
