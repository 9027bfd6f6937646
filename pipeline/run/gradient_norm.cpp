#include "pipeline/run/gradient_norm.h"

#include <cmath>
#include <vector>

#include "framework/sum_of_squares.h"

namespace antichain {
namespace {

// Calls f(full name, gradient) for each parameter that is trained, once where several nodes have it.
template <class F>
void for_each_gradient(const RankModel& model, const F& f) {
  for (const NodeId id : model.nodes()) {
    const Node& node = model.graph()[id];
    for (size_t i = 0; i < node.signature.params.size(); ++i)
      if (const Tensor& gradient = model[id].gradients[i]; gradient && !model[id].again[i])
        f(full_name(node, node.signature.params[i]), gradient);
  }
}

}  // namespace

SquaresByName HostNorm::squares() {
  SquaresByName squares;
  for_each_gradient(model_, [&](const std::string& name, const Tensor& gradient) {
    squares[name] = sum_of_squares(gradient.data<float>(), gradient.elements());
  });
  return squares;
}

void HostNorm::scale(float factor) {
  for_each_gradient(model_, [&](const std::string&, const Tensor& gradient) {
    float* const x = gradient.data<float>();
    const int64_t count = gradient.elements();
    for (int64_t i = 0; i < count; ++i) x[i] *= factor;
  });
}

void HostNorm::clip(double most) {
  if (const float factor = clip_factor(squares(), most); factor < 1) scale(factor);
}

DeviceNorm::DeviceNorm(const RankModel& model, DeviceStep& device, CopyStream& copies) : device_(device) {
  std::map<std::string, Tensor> by_name;
  for_each_gradient(model,
                    [&](const std::string& name, const Tensor& gradient) { by_name[name] = gradient; });
  std::vector<Tensor> gradients;
  for (const auto& [name, gradient] : by_name) {
    named_[name] = 0;
    gradients.push_back(gradient);
  }
  gradients_ = device_.gradients(gradients);
  const TensorSpec spec{{int64_t(gradients.size())}, DType::f64};
  host_ = Tensor(spec, copies.page_locked(spec.bytes()));
}

SquaresByName DeviceNorm::squares() {
  device_.sum_squares(gradients_);
  device_.copy_sums(gradients_, host_);
  device_.wait(device_.computed());
  const double* sum = host_.data<double>();
  for (auto& [name, squares] : named_) squares = *sum++;
  return named_;
}

void DeviceNorm::clip(double most) {
  device_.sum_squares(gradients_);
  device_.clip(gradients_, most);
}

float clip_factor(const SquaresByName& of_all_ranks, double most) {
  double sum = 0;
  for (const auto& [name, squares] : of_all_ranks) sum += squares;
  return clip_factor_of(std::sqrt(sum), most);
}

}  // namespace antichain
