// Reorder copies a tensor to another memory layout, another element type, or both. lower() inserts it where
// two neighbours' layouts differ.
#pragma once

#include "framework/op.h"

namespace antichain {

class Reorder : public Op {
 public:
  explicit Reorder(Layout to, DType from_type = DType::f32, DType to_type = DType::f32)
      : to(to), from_type(from_type), to_type(to_type) {}
  std::string_view type() const override { return "reorder"; }
  std::string str() const override {
    const std::string type = from_type == to_type ? "" : ", " + std::string(name_of(to_type));
    return "reorder(" + std::string(name_of(to)) + type + ")";
  }
  Signature infer(std::span<const Shape> x) const override {
    Signature signature;
    signature.y = {.shape = x[0]};
    return signature;
  }

  const Layout to;
  const DType from_type, to_type;
};

}  // namespace antichain
