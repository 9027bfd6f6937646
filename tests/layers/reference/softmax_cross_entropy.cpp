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

// Returns the shares of sample n, of a class or given; none where the sample pads.
std::vector<double> shares(const Tensor& labels, int64_t n, int64_t classes) {
  std::vector<double> all(size_t(classes), 0);
  if (labels.shape().rank() == 2)
    all.assign(labels.data<double>() + n * classes, labels.data<double>() + (n + 1) * classes);
  else if (const int32_t label = labels.data<int32_t>()[n]; label >= 0)
    all[size_t(label)] = 1;
  return std::ranges::count(all, 0) == classes ? std::vector<double>() : all;
}

void cross_entropy_forward(const Op& op, const Forward& f) {
  const double smoothing = static_cast<const SoftmaxCrossEntropy&>(op).options.label_smoothing;
  const int64_t classes = f.x[0].shape()[1];
  for (int64_t n = 0; n < f.y.shape()[0]; ++n) {
    const auto p = softmax(f.x[0].data<double>() + n * classes, classes);
    const auto share = shares(f.x[1], n, classes);
    double* y = f.y.data<double>() + 2 * n;
    y[0] = y[1] = 0;
    if (share.empty()) continue;
    for (size_t k = 0; k < p.size(); ++k) {
      const double target = (1 - smoothing) * share[k] + smoothing / double(classes);
      if (target > 0) y[0] -= target * std::log(p[k]);  // p may have become 0
    }
    y[1] = std::ranges::max_element(p) - p.begin() == std::ranges::max_element(share) - share.begin();
  }
}

void cross_entropy_backward(const Op& op, const Backward& b) {
  const double smoothing = static_cast<const SoftmaxCrossEntropy&>(op).options.label_smoothing;
  const int64_t classes = b.x[0].shape()[1];
  double* dx = wanted(b.dx, 0, Into::overwrite);
  for (int64_t n = 0; dx && n < b.x[0].shape()[0]; ++n) {
    const auto p = softmax(b.x[0].data<double>() + n * classes, classes);
    const auto share = shares(b.x[1], n, classes);
    double sum = smoothing;
    for (const double s : share) sum += (1 - smoothing) * s;
    for (size_t k = 0; k < share.size(); ++k)
      dx[size_t(n * classes) + k] =
          b.loss_scale * (sum * p[k] - (1 - smoothing) * share[k] - smoothing / double(classes));
  }
}

}  // namespace

KernelEntry softmax_cross_entropy() { return entry_of(cross_entropy_forward, cross_entropy_backward); }

}  // namespace antichain::reference
