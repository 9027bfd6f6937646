#include "data/mix.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace antichain {
namespace {

// Returns a number of (0, 1].
double positive(KeyedDraws& draws) { return (double(draws.word()) + 1) * 0x1p-32; }

// Box and Muller, "A Note on the Generation of Random Normal Deviates", 1958.
double normal(KeyedDraws& draws) {
  const double radius = std::sqrt(-2 * std::log(positive(draws)));
  return radius * std::cos(2 * std::numbers::pi * positive(draws));
}

// Returns the logarithm of a number from Gamma(shape, 1): Marsaglia and Tsang, "A Simple Method for
// Generating Gamma Variables", ACM TOMS 2000. The logarithm is finite where the number would be 0 in double
// precision.
double log_gamma_draw(double shape, KeyedDraws& draws) {
  if (shape < 1) {
    const double larger = log_gamma_draw(shape + 1, draws);
    return larger + std::log(positive(draws)) / shape;
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = normal(draws), root = 1 + c * x, v = root * root * root;
    if (root > 0 && std::log(positive(draws)) < 0.5 * x * x + d - d * v + d * std::log(v))
      return std::log(d * v);
  }
}

double beta_draw(double alpha, KeyedDraws& draws) {
  const double first = log_gamma_draw(alpha, draws), second = log_gamma_draw(alpha, draws);
  return 1 / (1 + std::exp(second - first));
}

Mix shares(double lambda) { return {.own = float(lambda), .other = float(1 - lambda)}; }

// The rectangle's middle may be anywhere in the image, whose edges cut it.
Mix cut(double lambda, const Shape& chw, KeyedDraws& draws) {
  const int height = int(chw[1]), width = int(chw[2]);
  const int x = draws.below(width), y = draws.below(height);
  const double half = 0.5 * std::sqrt(1 - lambda);
  const int half_width = int(half * width), half_height = int(half * height);
  const int left = std::max(x - half_width, 0), right = std::min(x + half_width, width);
  const int top = std::max(y - half_height, 0), bottom = std::min(y + half_height, height);
  const Box box{top, left, bottom - top, right - left};
  Mix mix = shares(1 - double(box.height) * box.width / (double(width) * height));
  mix.pasted = box;
  return mix;
}

}  // namespace

void mix_images(const Mix& mix, const Shape& chw, std::span<const float> own, std::span<const float> other,
                std::span<float> out) {
  if (mix.pasted.empty()) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = blended(mix, own[i], other[i]);
    return;
  }
  std::copy(own.begin(), own.end(), out.begin());
  const Box& box = mix.pasted;
  for (int64_t c = 0; c < chw[0]; ++c)
    for (int y = box.top; y < box.top + box.height; ++y) {
      const int64_t at = (c * chw[1] + y) * chw[2] + box.left;
      std::copy_n(other.begin() + at, box.width, out.begin() + at);
    }
}

bool mixes(const AugmentOptions& options) { return options.mixup > 0 || options.cutmix > 0; }

Mix draw_mix(const AugmentOptions& options, const Shape& chw, uint64_t seed, int64_t epoch, int64_t batch) {
  if (!mixes(options)) return {};
  KeyedDraws draws(seed, "mix", epoch, batch);
  const bool cuts = draws.coin() ? options.cutmix > 0 : options.mixup <= 0;
  const double lambda = beta_draw(cuts ? options.cutmix : options.mixup, draws);
  return cuts ? cut(lambda, chw, draws) : shares(lambda);
}

}  // namespace antichain
