#include "pipeline/run/gradient_norm.h"

#include <algorithm>
#include <cmath>

#include "framework/backend.h"
#include "framework/sum_of_squares.h"

namespace antichain {
namespace {

// Calls f(full name, gradient) for each parameter that is trained.
template <class F>
void for_each_gradient(const RankModel& model, const F& f) {
  for (const NodeId id : model.nodes()) {
    if (!model.graph().needs_gradient(id)) continue;
    const Node& node = model.graph()[id];
    for (size_t i = 0; i < node.signature.params.size(); ++i)
      f(full_name(node, node.signature.params[i]), model[id].gradients[i]);
  }
}

}  // namespace

SquaresByName squares_of_gradients(const RankModel& model) {
  const Context& context = model.context();
  SquaresByName squares;
  for_each_gradient(model, [&](const std::string& name, const Tensor& gradient) {
    Tensor host = gradient;
    if (!context.backend().host_memory()) {
      host = Tensor::host(gradient.spec());
      context.backend().copy(context, gradient, host);
    }
    squares[name] = sum_of_squares(host.data<float>(), host.elements());
  });
  return squares;
}

void scale_gradients(RankModel& model, float factor) {
  const Context& context = model.context();
  for_each_gradient(model, [&](const std::string&, const Tensor& gradient) {
    Tensor host = gradient;
    const bool there = !context.backend().host_memory();
    if (there) {
      host = Tensor::host(gradient.spec());
      context.backend().copy(context, gradient, host);
    }
    float* const x = host.data<float>();
    const int64_t count = host.elements();
    for (int64_t i = 0; i < count; ++i) x[i] *= factor;
    if (there) context.backend().copy(context, host, gradient);
  });
}

float clip_factor(const SquaresByName& of_all_ranks, double most) {
  double sum = 0;
  for (const auto& [name, squares] : of_all_ranks) sum += squares;
  const double norm = std::sqrt(sum);
  return std::isfinite(norm) ? float(std::min(1., most / (norm + 1e-6))) : 1.f;
}

}  // namespace antichain
