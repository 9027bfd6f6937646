#include "data/resize.h"

#include <algorithm>
#include <cmath>

#include "framework/error.h"

namespace antichain {
namespace {

struct Window {  // of the source, in pixels
  double first, length;
};

// Taps say which source pixels make one target pixel, and how much each counts; the weights add up to 1.
struct Taps {
  int first = 0;
  std::vector<float> weights;
};

std::vector<Taps> taps_of(int source, const Window& window, int target) {
  const double scale = window.length / target, reach = std::max(scale, 1.0);
  std::vector<Taps> all;
  for (int t = 0; t < target; ++t) {
    const double centre = window.first + (t + 0.5) * scale;
    const int first = std::max(int(std::floor(centre - reach + 0.5)), 0);
    const int end = std::min(int(std::floor(centre + reach + 0.5)), source);
    std::vector<double> weights;
    double sum = 0;
    for (int s = first; s < end; ++s) {
      weights.push_back(std::max(1 - std::fabs((s + 0.5 - centre) / reach), 0.0));
      sum += weights.back();
    }
    Taps taps{.first = first};
    for (const double weight : weights) taps.weights.push_back(float(weight / sum));
    all.push_back(std::move(taps));
  }
  return all;
}

uint8_t rounded(float level) { return uint8_t(std::clamp(level + 0.5f, 0.0f, 255.0f)); }

}  // namespace

Image resize(const Image& image, int height, int width) {
  ANTICHAIN_CHECK(height >= 1 && width >= 1 && image.height >= 1 && image.width >= 1, "an image has pixels");
  if (image.height == height && image.width == width) return image;
  const double scale = std::min(double(image.height) / height, double(image.width) / width);
  const auto middle = [](int source, double length) { return Window{(source - length) / 2, length}; };
  const std::vector<Taps> rows = taps_of(image.height, middle(image.height, scale * height), height);
  const std::vector<Taps> columns = taps_of(image.width, middle(image.width, scale * width), width);
  // Scales along the rows first, for the source rows that are needed.
  std::vector<float> narrow(size_t(image.height) * size_t(width) * 3);
  for (int y = rows.front().first; y < rows.back().first + int(rows.back().weights.size()); ++y) {
    const uint8_t* source = &image.pixels[size_t(y) * size_t(image.width) * 3];
    for (int x = 0; x < width; ++x) {
      const Taps& taps = columns[size_t(x)];
      for (int c = 0; c < 3; ++c) {
        float sum = 0;
        for (size_t i = 0; i < taps.weights.size(); ++i)
          sum += taps.weights[i] * float(source[(size_t(taps.first) + i) * 3 + size_t(c)]);
        narrow[(size_t(y) * size_t(width) + size_t(x)) * 3 + size_t(c)] = sum;
      }
    }
  }
  Image result{
      .height = height, .width = width, .pixels = std::vector<uint8_t>(size_t(height) * size_t(width) * 3)};
  const size_t line = size_t(width) * 3;
  for (int y = 0; y < height; ++y) {
    const Taps& taps = rows[size_t(y)];
    for (size_t x = 0; x < line; ++x) {
      float sum = 0;
      for (size_t i = 0; i < taps.weights.size(); ++i)
        sum += taps.weights[i] * narrow[(size_t(taps.first) + i) * line + x];
      result.pixels[size_t(y) * line + x] = rounded(sum);
    }
  }
  return result;
}

}  // namespace antichain
