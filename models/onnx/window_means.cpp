#include "models/onnx/window_means.h"

#include "layers/adaptive_pool.h"

namespace antichain::onnx {
namespace {

// Calls f(output, pixel, mean) for each element that is not 0.
template <class F>
void for_each_mean(int64_t in, int64_t out, F&& f) {
  for (int64_t i = 0; i < out; ++i) {
    const AdaptiveWindow window(i, in, out);
    for (int64_t p = window.begin; p < window.end; ++p) f(i, p, 1.0f / float(window.size()));
  }
}

bool is_matrix(const NamedTensor& x) { return x.is_float() && x.shape.size() == 2 && x.elements() > 0; }

}  // namespace

std::vector<float> means_of_rows(int64_t in, int64_t out) {
  std::vector<float> means(size_t(in * out));
  for_each_mean(in, out, [&](int64_t i, int64_t p, float mean) { means[size_t(i * in + p)] = mean; });
  return means;
}

std::vector<float> means_of_columns(int64_t in, int64_t out) {
  std::vector<float> means(size_t(in * out));
  for_each_mean(in, out, [&](int64_t i, int64_t p, float mean) { means[size_t(p * out + i)] = mean; });
  return means;
}

bool averages_rows(const NamedTensor& x) {
  return is_matrix(x) && std::get<std::vector<float>>(x.values) == means_of_rows(x.shape[1], x.shape[0]);
}

bool averages_columns(const NamedTensor& x) {
  return is_matrix(x) && std::get<std::vector<float>>(x.values) == means_of_columns(x.shape[0], x.shape[1]);
}

}  // namespace antichain::onnx
