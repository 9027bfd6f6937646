// Computes softmax cross-entropy as the header of the operator defines it.
#include "layers/softmax_cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "tests/layers/reference/reference.h"

namespace antichain::reference {
namespace {

std::vector<double> softmax(const double* logits, int64_t classes) {
  const double largest = *std::max_element(logits, logits + classes);
  std::vector<double> p(logits, logits + classes);
  double sum = 0;
  for (double& value : p) sum += value = std::exp(value - largest);
  for (double& value : p) value /= sum;
  return p;
}

double target(double smoothing, int64_t classes, bool is_label) {
  return (is_label ? 1 - smoothing : 0) + smoothing / double(classes);
}

void forward(const Op& op, const Forward& f) {
  const double smoothing = static_cast<const SoftmaxCrossEntropy&>(op).options.label_smoothing;
  const int64_t classes = f.x[0].shape()[1];
  for (int64_t n = 0; n < f.y.shape()[0]; ++n) {
    const auto p = softmax(f.x[0].data<double>() + n * classes, classes);
    const int32_t label = f.x[1].data<int32_t>()[n];
    double loss = 0;
    for (int64_t k = 0; k < classes; ++k) loss -= target(smoothing, classes, k == label) * std::log(p[k]);
    const bool right = std::max_element(p.begin(), p.end()) - p.begin() == label;
    f.y.data<double>()[2 * n] = label < 0 ? 0 : loss;
    f.y.data<double>()[2 * n + 1] = right ? 1 : 0;
  }
}

void backward(const Op& op, const Backward& b) {
  const double smoothing = static_cast<const SoftmaxCrossEntropy&>(op).options.label_smoothing;
  const int64_t classes = b.x[0].shape()[1];
  double* dx = wanted(b.dx, 0, Into::overwrite);
  for (int64_t n = 0; dx && n < b.x[0].shape()[0]; ++n) {
    const auto p = softmax(b.x[0].data<double>() + n * classes, classes);
    const int32_t label = b.x[1].data<int32_t>()[n];
    for (int64_t k = 0; k < classes && label >= 0; ++k)
      dx[n * classes + k] = b.loss_scale * (p[k] - target(smoothing, classes, k == label));
  }
}

}  // namespace

KernelEntry softmax_cross_entropy() { return entry_of(forward, backward); }

}  // namespace antichain::reference
