// A NonFinite is a number of a training step that is infinite or not a number (NaN), named by the place that
// made it.
//
// They are ordered by micro-batch, then forward before backward, then by the order of the nodes, however the
// model is cut and the schedule interleaves. A tensor can only spoil what comes later in this order, so the
// smallest of all ranks is the cause, and the others are its consequences.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/graph.h"

namespace antichain {

struct NonFinite {
  enum class Phase { forward, backward, update };
  enum class What { output, parameter, statistics, input_gradient, weight_gradient };

  int microbatch = 0;  // not used in the phase update, which is later than all
  Phase phase = Phase::forward;
  NodeId node = 0;
  What what = What::output;
  int index = 0;  // of the input or parameter
  int rank = 0;

  std::strong_ordering operator<=>(const NonFinite&) const;
  bool operator==(const NonFinite& other) const { return (*this <=> other) == 0; }
};

// A NumberReport is what one rank found in one step. `bad` says that the step must not count: its loss, a
// statistic or a gradient of a weight is not finite; none of these depends on how the model is cut. `first`
// may be set without it, for a NaN that a ReLU swallowed.
struct NumberReport {
  bool bad = false;
  std::optional<NonFinite> first;

  void note(const NonFinite& found) {
    if (!first || found < *first) first = found;
  }
};

// Returns the first of all ranks' reports, given in any order, if any of them is bad.
std::optional<NonFinite> first_non_finite(const std::vector<NumberReport>&);

std::string to_text(const NumberReport&);
NumberReport report_from_text(const std::string&);

// "step 5, micro-batch 2: the output of node layer1.0.conv1 (rank 0) is not finite". Steps count from 1, as
// in metrics.
std::string describe(const NonFinite&, const Graph&, int64_t step);

}  // namespace antichain
