// Computes attention and rotary positions, row by row, as their formulas stand in the headers.
#include "layers/attention.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "layers/rotary.h"
#include "tests/layers/reference/reference.h"

namespace antichain::reference {
namespace {

// The queries, keys and values of a node, or their gradients. A nullptr is a gradient that is not wanted.
struct Operands {
  double *q, *k, *v;
  int64_t q_row, k_row;

  Operands(std::span<const Tensor> x, const AttentionSizes& s) {
    const auto at = [&](size_t i) { return x.empty() || !x[i] ? nullptr : x[i].data<double>(); };
    q = at(0), k = at(s.packed ? 0 : 1), v = at(s.packed ? 0 : 2);
    q_row = s.heads * s.width, k_row = s.kv_heads * s.width;
    if (!s.packed) return;
    if (q) k += q_row, v += q_row + k_row;
    q_row = k_row = q_row + 2 * k_row;
  }
};

// Says where number d of a head's rows lies.
struct Place {
  int64_t row, stride, first;
  int64_t operator()(int64_t behind, int64_t d) const { return (row + behind) * stride + first + d; }
};

// One query of one head.
struct Query {
  Place q, k;                     // its row, and those of keys and values
  std::vector<double> p, factor;  // of each key: 0 where it is not seen; and what dropout makes of it

  Query(const Attention& op, const AttentionSizes& s, std::span<const Tensor> x,
        const DropoutMask::Draw* draw, int64_t n, int64_t head, int64_t i)
      : p(size_t(s.keys)), factor(size_t(s.keys), 1.0) {
    const Operands in(x, s);
    q = {n * s.queries + i, in.q_row, head * s.width};
    k = {n * s.keys, in.k_row, head / s.group() * s.width};
    const int32_t* documents = s.documents ? x.back().data<int32_t>() + n * s.keys : nullptr;
    const double kept = 1 / (1 - double(op.options.dropout));
    double sum = 0;
    for (int64_t j = 0; j < s.keys; ++j) {
      const int32_t own = documents ? documents[i + s.earlier()] : 0;
      if (j >= s.most_keys(op.options.causal, i) || own < 0 || (documents && documents[j] != own)) continue;
      double score = 0;
      for (int64_t d = 0; d < s.width; ++d) score += in.q[q(0, d)] * in.k[k(j, d)];
      sum += p[size_t(j)] = std::exp(double(s.scale) * score);
      if (draw) factor[size_t(j)] = draw->kept(n, s.mask_element(head, i) + j) ? kept : 0;
    }
    for (double& probability : p) probability /= sum > 0 ? sum : 1;
  }
};

// Calls f(sample, head, query).
template <class F>
void for_each_query(const AttentionSizes& s, const F& f) {
  for (int64_t n = 0; n < s.samples; ++n)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t i = 0; i < s.queries; ++i) f(n, h, i);
}

AttentionSizes sizes_of(const Attention& op, std::span<const Tensor> x) {
  std::vector<Shape> shapes;
  for (const Tensor& tensor : x) shapes.push_back(tensor.shape());
  return op.sizes(shapes);
}

void attention_forward(const Op& any, const Forward& f) {
  const auto& op = dynamic_cast<const Attention&>(any);
  const AttentionSizes s = sizes_of(op, f.x);
  const Operands in(f.x, s);
  const DropoutMask::Draw draw = op.draw(f.dropout);
  const bool drops = f.mode == Mode::train && op.options.dropout > 0;
  std::memset(f.y.raw(), 0, size_t(f.y.bytes()));
  for_each_query(s, [&](int64_t n, int64_t h, int64_t i) {
    const Query query(op, s, f.x, drops ? &draw : nullptr, n, h, i);
    double* y = f.y.data<double>() + ((n * s.queries + i) * s.heads + h) * s.width;
    for (int64_t j = 0; j < s.keys; ++j)
      for (int64_t d = 0; d < s.width; ++d)
        y[d] += query.p[size_t(j)] * query.factor[size_t(j)] * in.v[query.k(j, d)];
  });
}

void attention_backward(const Op& any, const Backward& b) {
  const auto& op = dynamic_cast<const Attention&>(any);
  const AttentionSizes s = sizes_of(op, b.x);
  const Operands in(b.x, s);
  for (size_t i = 0; i < (s.packed ? 1 : 3); ++i) wanted(b.dx, i, Into::overwrite);
  const Operands out(b.dx, s);
  const DropoutMask::Draw draw = op.draw(b.dropout);
  for_each_query(s, [&](int64_t n, int64_t h, int64_t i) {
    const Query query(op, s, b.x, op.options.dropout > 0 ? &draw : nullptr, n, h, i);
    const double* dy = b.dy.data<double>() + ((n * s.queries + i) * s.heads + h) * s.width;
    std::vector<double> dp(size_t(s.keys), 0.0);
    double delta = 0;
    for (int64_t j = 0; j < s.keys; ++j) {
      for (int64_t d = 0; d < s.width; ++d) dp[size_t(j)] += dy[d] * in.v[query.k(j, d)];
      dp[size_t(j)] *= query.factor[size_t(j)];
      delta += query.p[size_t(j)] * dp[size_t(j)];
    }
    for (int64_t j = 0; j < s.keys; ++j)
      for (int64_t d = 0; d < s.width; ++d) {
        const double p = query.p[size_t(j)], ds = double(s.scale) * p * (dp[size_t(j)] - delta);
        if (out.q) out.q[query.q(0, d)] += ds * in.k[query.k(j, d)];
        if (out.k) out.k[query.k(j, d)] += ds * in.q[query.q(0, d)];
        if (out.v) out.v[query.k(j, d)] += p * query.factor[size_t(j)] * dy[d];
      }
  });
}

void turn(const Op& any, const Tensor& from, std::span<const Tensor> x, double sign, double* to) {
  const auto& op = dynamic_cast<const Rotary&>(any);
  const Shape& shape = x[0].shape();
  const int64_t pairs = op.pairs(shape);
  for (int64_t row = 0; row < shape[0] * shape[1] * op.options.heads; ++row) {
    const int64_t at = row / op.options.heads;
    const int64_t position = x.size() > 1 ? x[1].data<int32_t>()[at] : at % shape[1];
    for (int64_t i = 0; i < pairs; ++i) {
      const int64_t first = row * 2 * pairs + (op.options.interleaved ? 2 * i : i);
      const int64_t second = first + (op.options.interleaved ? 1 : pairs);
      const double angle =
          sign * double(position) * std::pow(op.options.theta, -2.0 * double(i) / double(2 * pairs));
      const double a = from.data<double>()[first], b = from.data<double>()[second];
      to[first] = a * std::cos(angle) - b * std::sin(angle);
      to[second] = b * std::cos(angle) + a * std::sin(angle);
    }
  }
}

void rotary_forward(const Op& op, const Forward& f) { turn(op, f.x[0], f.x, 1, f.y.data<double>()); }

void rotary_backward(const Op& op, const Backward& b) {
  if (double* dx = wanted(b.dx, 0, Into::overwrite)) turn(op, b.dy, b.x, -1, dx);
}

}  // namespace

KernelEntry attention() { return entry_of(attention_forward, attention_backward); }
KernelEntry rotary() { return entry_of(rotary_forward, rotary_backward); }

}  // namespace antichain::reference
