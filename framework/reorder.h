// Reorder: the same values in another memory layout. lower() inserts it where two neighbours disagree.
#pragma once

#include "framework/op.h"

namespace antichain {

class Reorder : public Op {
 public:
  explicit Reorder(Layout to) : to(to) {}
  std::string_view type() const override { return "reorder"; }
  std::string str() const override { return "reorder(" + std::string(name_of(to)) + ")"; }
  Signature infer(std::span<const Shape> x) const override {
    Signature signature;
    signature.y = {.shape = x[0]};
    return signature;
  }

  const Layout to;
};

}  // namespace antichain
