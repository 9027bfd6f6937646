// A CopyKernel serves operators that only copy numbers to other places or types: forward goes from one
// description of a tensor to another, and backward from the second to the first.
#pragma once

#include <algorithm>

#include "layers/cpu/adapted.h"

namespace antichain::cpu {

class CopyKernel : public Kernel {
 public:
  CopyKernel(const Desc& x, const Desc& y) : forward_(x, y), backward_(y, x) {}

  int64_t workspace_bytes() const { return std::max(forward_.scratch_bytes(), backward_.scratch_bytes()); }

  void forward(Context& context, const Forward& f) const override {
    forward_.run(context, f.x[0].raw(), f.y.raw());
  }
  void backward(Context& context, const Backward& b) const override {
    if (!b.dx.empty() && b.dx[0]) backward_.run(context, b.dy.raw(), b.dx[0].raw());
  }

 private:
  Reordered forward_, backward_;
};

}  // namespace antichain::cpu
