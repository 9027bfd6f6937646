// Computes softmax cross-entropy as the header of the operator defines it.
#include "layers/softmax_cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/layers/reference/reference.h"

namespace antichain::reference {
namespace {

// One position of one sample: its logits, and what its label says.
struct Position {
  std::vector<double> p;       // softmax
  std::vector<double> target;  // empty where it does not count
  size_t label = 0;            // the arg max of the shares
};

struct Loss {
  const SoftmaxCrossEntropy& op;
  const Tensor &logits, &labels;
  const int64_t classes, positions;

  Loss(const Op& of, const Tensor& x, const Tensor& y)
      : op(static_cast<const SoftmaxCrossEntropy&>(of)),
        logits(x),
        labels(y),
        classes(op.sizes(x.shape()).classes),
        positions(op.sizes(x.shape()).positions) {}

  int64_t place(int64_t n, int64_t at, int64_t k) const {
    if (op.options.classes_last) return (n * positions + at) * classes + k;
    return (n * classes + k) * positions + at;
  }
  double weight(int64_t k) const {
    const auto& weights = op.options.class_weights;
    return weights.empty() ? 1 : double(weights[size_t(k)]);
  }

  std::vector<double> shares(int64_t n, int64_t at) const {
    std::vector<double> all(size_t(classes), 0);
    if (labels.dtype() != DType::i32)
      all.assign(labels.data<double>() + n * classes, labels.data<double>() + (n + 1) * classes);
    else if (const int32_t label = labels.data<int32_t>()[n * positions + at]; !op.ignores(label))
      all[size_t(label)] = 1;
    return all;
  }

  Position position(int64_t n, int64_t at) const {
    Position found;
    for (int64_t k = 0; k < classes; ++k) found.p.push_back(logits.data<double>()[place(n, at, k)]);
    const double largest = std::ranges::max(found.p);
    double sum = 0;
    for (double& value : found.p) sum += value = std::exp(value - largest);
    for (double& value : found.p) value /= sum;
    const std::vector<double> share = shares(n, at);
    if (std::ranges::count(share, 0) == classes) return found;
    found.label = size_t(std::ranges::max_element(share) - share.begin());
    const double smoothing = double(op.options.label_smoothing);
    for (int64_t k = 0; k < classes; ++k)
      found.target.push_back(weight(k) * ((1 - smoothing) * share[size_t(k)] + smoothing / double(classes)));
    return found;
  }
};

void cross_entropy_forward(const Op& op, const Forward& f) {
  const Loss loss(op, f.x[0], f.x[1]);
  for (int64_t n = 0; n < f.y.shape()[0]; ++n) {
    double* y = f.y.data<double>() + 2 * n;
    y[0] = y[1] = 0;
    for (int64_t at = 0; at < loss.positions; ++at) {
      const auto [p, target, label] = loss.position(n, at);
      if (target.empty()) continue;
      for (size_t k = 0; k < p.size(); ++k)
        if (target[k] > 0) y[0] -= target[k] * std::log(p[k]);  // p may have become 0
      y[1] += size_t(std::ranges::max_element(p) - p.begin()) == label;
    }
    y[1] /= double(loss.positions);
  }
}

void cross_entropy_backward(const Op& op, const Backward& b) {
  const Loss loss(op, b.x[0], b.x[1]);
  double* dx = wanted(b.dx, 0, Into::overwrite);
  for (int64_t n = 0; dx && n < b.x[0].shape()[0]; ++n)
    for (int64_t at = 0; at < loss.positions; ++at) {
      const auto [p, target, label] = loss.position(n, at);
      const double sum = std::accumulate(target.begin(), target.end(), 0.0);
      for (size_t k = 0; k < target.size(); ++k)
        dx[loss.place(n, at, int64_t(k))] = double(b.loss_scale) * (sum * p[k] - target[k]);
    }
}

}  // namespace

KernelEntry softmax_cross_entropy() { return entry_of(cross_entropy_forward, cross_entropy_backward); }

}  // namespace antichain::reference
