// ClassToken puts a parameter before the tokens of every sample, whose place gathers what the sample is:
// Dosovitskiy et al., "An Image is Worth 16x16 Words: Transformers for Image Recognition at Scale", ICLR
// 2021.
//
//   x  N x T x C     token  1 x 1 x C     y  N x (T + 1) x C, the token first
//   dtoken = Σ over the samples, in their order
//
// The parameter has no name of its own: node "class_token" has the parameter "class_token", as torchvision's
// VisionTransformer.
#pragma once

#include "framework/graph.h"

namespace antichain {

struct ClassTokenOptions {
  Initialiser weight_init = Initialiser::constant(0);
};
template <class Visit>
void fields(ClassTokenOptions& o, Visit&& visit) {
  visit("weight_init", o.weight_init);
}

class ClassToken : public Op {
 public:
  explicit ClassToken(ClassTokenOptions o) : options(o) {}
  std::string_view type() const override { return "class_token"; }
  std::string str() const override;
  Signature infer(std::span<const Shape> x) const override;

  const ClassTokenOptions options;
};

NodeId class_token(Graph&, std::string name, NodeId x, ClassTokenOptions = {});

}  // namespace antichain
