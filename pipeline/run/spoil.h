// A Spoil fills one tensor of a step with NaNs where a fault on demand (pipeline/host/fault.h) says so. Tests
// of what finds such numbers use it.
#pragma once

#include <optional>
#include <utility>

#include "framework/context.h"
#include "framework/graph.h"
#include "pipeline/host/fault.h"

namespace antichain {

class Spoil {
 public:
  // Without a fault it leaves every tensor alone.
  void set(std::optional<Poison> fault) { fault_ = std::move(fault); }
  bool active() const { return fault_.has_value(); }
  // `tensor` is the node's output, or with `gradient` the gradient that it gives its first input; it may be
  // empty.
  void apply(const Context&, const Node&, int microbatch, bool gradient, const Tensor& tensor) const;

 private:
  std::optional<Poison> fault_;
};

}  // namespace antichain
