// PRelu is the parametric rectified linear unit: y = x where x > 0, else a[c] x, with a learned slope a for
// each channel. x and y are N x C x H x W, `weight` (a) is C. He et al., "Delving Deep into Rectifiers", ICCV
// 2015.
#pragma once

#include "framework/graph.h"

class PRelu : public antichain::Op {
 public:
  std::string_view type() const override { return "prelu"; }
  std::string str() const override { return "prelu"; }
  antichain::Signature infer(std::span<const antichain::Shape> x) const override;
};

antichain::NodeId prelu(antichain::Graph&, std::string name, antichain::NodeId x);

// Makes the kernel on the CPU known: call it before antichain::run.
void register_prelu();
