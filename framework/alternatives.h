// Lists the ways in which a device could carry out a pass of an operator, so that `antichain profile --tune`
// can compare them by timing. Training always uses the first of them, which the device's own rule chooses.
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
  // Starts the pass with the operands as listed and that much workspace.
  std::function<void(Context&, std::span<const Tensor>, std::byte* workspace)> run;
};

struct PassAlternatives {
  std::string pass;  // "forward", "input gradient", "weight gradient"
  std::vector<TensorSpec> operands;
  std::vector<Alternative> all;
};

// Lists the alternatives of one operator on inputs of those shapes. The list is empty where there is nothing
// to choose.
using ListAlternatives =
    std::function<std::vector<PassAlternatives>(const Op&, std::span<const Shape> x, Precision)>;

void register_alternatives(const std::string& backend, ListAlternatives);
const ListAlternatives* alternatives_of(std::string_view backend);  // nullptr where none are registered

}  // namespace antichain
