// The ways in which a device could carry out a pass of an operator, for who compares them by timing
// (`antichain profile --tune`). What runs in training is always the first of them, which the device's own
// rule has chosen.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/context.h"
#include "framework/op.h"

namespace antichain {

struct Alternative {
  std::string engine;  // for people
  int64_t workspace_bytes = 0;
  // Starts it, with operands as listed and that much workspace.
  std::function<void(Context&, std::span<const Tensor>, std::byte* workspace)> run;
};

struct PassAlternatives {
  std::string pass;  // "forward", "input gradient", "weight gradient"
  std::vector<TensorSpec> operands;
  std::vector<Alternative> all;
};

// Of one operator on inputs of those shapes; nothing where there is nothing to choose.
using ListAlternatives =
    std::function<std::vector<PassAlternatives>(const Op&, std::span<const Shape> x, Precision)>;

void register_alternatives(const std::string& backend, ListAlternatives);
const ListAlternatives* alternatives_of(std::string_view backend);  // nullptr where none are registered

}  // namespace antichain
