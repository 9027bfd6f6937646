// The arithmetic is in float32 and in the order that torchvision's has, because results are rounded to bytes.
#include "data/augment_trivial.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "data/normaliser.h"

namespace antichain {
namespace {

using Bytes = std::span<const uint8_t>;
using Out = std::span<uint8_t>;

// Returns the bin's value where `strength_bins` values lie evenly between two ends, by the rule of
// torch.linspace, whose own last bit depends on the processor's vectors.
double evenly(float first, float last, int bin) {
  const float step = (last - first) / float(strength_bins - 1);
  if (bin < strength_bins / 2) return double(first + step * float(bin));
  return double(last - step * float(strength_bins - 1 - bin));
}

double share_strength(int bin) { return evenly(0, 0.99f, bin); }
double pixel_strength(int bin) { return evenly(0, 32, bin); }
double degree_strength(int bin) { return evenly(0, 135, bin); }
double threshold_strength(int bin) { return evenly(255, 0, bin); }
double bit_strength(int bin) { return 8 - std::nearbyint(bin / 5.0); }

int64_t area(const Shape& chw) { return chw[1] * chw[2]; }

void keep(Bytes from, const Shape&, double, Out to) { std::ranges::copy(from, to.begin()); }

// Row-major 2 x 3: where a pixel comes from, in pixels from the image's middle.
using Matrix = std::array<double, 6>;

// Each pixel is the one nearest to matrix · (x, y, 1). The steps and their rounding are those of
// torchvision's _gen_affine_grid and of torch's grid_sample: coordinates in [−1, 1] and back.
void transform(Bytes from, const Shape& chw, const Matrix& matrix, Out to) {
  const int height = int(chw[1]), width = int(chw[2]);
  const auto scaled = [](double value, int extent) { return float(value) / (0.5f * float(extent)); };
  const float xx = scaled(matrix[0], width), xy = scaled(matrix[1], width), x1 = scaled(matrix[2], width);
  const float yx = scaled(matrix[3], height), yy = scaled(matrix[4], height), y1 = scaled(matrix[5], height);
  const auto place = [](float in_unit, int extent) {
    return std::nearbyint(((in_unit + 1.0f) * float(extent) - 1.0f) / 2.0f);
  };
  for (int y = 0; y < height; ++y) {
    const float v = float(y) - float(height) * 0.5f + 0.5f;
    for (int x = 0; x < width; ++x) {
      const float u = float(x) - float(width) * 0.5f + 0.5f;
      const float column = place(u * xx + v * xy + x1, width), row = place(u * yx + v * yy + y1, height);
      const bool inside = column >= 0 && column < float(width) && row >= 0 && row < float(height);
      const int64_t source = inside ? int64_t(row) * width + int64_t(column) : 0;
      for (int64_t c = 0; c < chw[0]; ++c)
        to[size_t(c * area(chw) + int64_t(y) * width + x)] =
            inside ? from[size_t(c * area(chw) + source)] : uint8_t(0);
    }
  }
}

// Returns radians by way of degrees, as torchvision does, because that rounds.
double shear_angle(double strength) {
  return std::atan(strength) * (180 / std::numbers::pi) * (std::numbers::pi / 180);
}

// Shears leave the upper left corner where it is.
void shear_x(Bytes from, const Shape& chw, double strength, Out to) {
  const double slope = std::tan(shear_angle(strength));
  const double half_height = 0.5 * double(chw[1]), half_width = 0.5 * double(chw[2]);
  transform(from, chw, {1, slope, half_width + slope * half_height - half_width, 0, 1, 0}, to);
}

void shear_y(Bytes from, const Shape& chw, double strength, Out to) {
  const double slope = std::sin(shear_angle(strength)) / std::cos(shear_angle(strength));
  const double half_height = 0.5 * double(chw[1]), half_width = 0.5 * double(chw[2]);
  transform(from, chw, {1, 0, 0, slope, 1, slope * half_width + half_height - half_height}, to);
}

void translate_x(Bytes from, const Shape& chw, double strength, Out to) {
  transform(from, chw, {1, 0, -std::trunc(strength), 0, 1, 0}, to);
}

void translate_y(Bytes from, const Shape& chw, double strength, Out to) {
  transform(from, chw, {1, 0, 0, 0, 1, -std::trunc(strength)}, to);
}

// Counter-clockwise about the middle.
void rotate(Bytes from, const Shape& chw, double strength, Out to) {
  const double angle = -strength * (std::numbers::pi / 180), c = std::cos(angle), s = std::sin(angle);
  transform(from, chw, {c, s, 0, -s, c, 0}, to);
}

uint8_t byte_of(float value) { return uint8_t(std::clamp(value, 0.0f, 255.0f)); }

// Returns ratio · own + (1 − ratio) · other.
struct Blend {
  explicit Blend(double ratio) : own_(float(ratio)), other_(float(1.0 - ratio)) {}
  uint8_t operator()(uint8_t own, float other) const { return byte_of(own_ * float(own) + other_ * other); }

 private:
  float own_, other_;
};

void brightness(Bytes from, const Shape&, double strength, Out to) {
  std::ranges::transform(from, to.begin(),
                         [blend = Blend(1.0 + strength)](uint8_t b) { return blend(b, 0); });
}

std::vector<uint8_t> greys(Bytes from, const Shape& chw) {
  if (chw[0] == 1) return {from.begin(), from.end()};
  const size_t pixels = size_t(area(chw));
  std::vector<uint8_t> grey(pixels);
  for (size_t i = 0; i < pixels; ++i)
    grey[i] = uint8_t(0.2989f * float(from[i]) + 0.587f * float(from[pixels + i]) +
                      0.114f * float(from[2 * pixels + i]));
  return grey;
}

void color(Bytes from, const Shape& chw, double strength, Out to) {
  if (chw[0] == 1) return keep(from, chw, strength, to);
  const std::vector<uint8_t> grey = greys(from, chw);
  const Blend blend(1.0 + strength);
  for (size_t i = 0; i < from.size(); ++i) to[i] = blend(from[i], float(grey[i % grey.size()]));
}

void contrast(Bytes from, const Shape& chw, double strength, Out to) {
  int64_t sum = 0;
  for (const uint8_t grey : greys(from, chw)) sum += grey;
  const float mean = float(sum) / float(area(chw));
  const Blend blend(1.0 + strength);
  std::ranges::transform(from, to.begin(), [&](uint8_t b) { return blend(b, mean); });
}

// The blurred image is the mean of 3 x 3 pixels in which the middle counts five times; the edges stay as they
// are. Thirteenths are never half-way between two bytes, so no rounding error matters.
void sharpness(Bytes from, const Shape& chw, double strength, Out to) {
  const int64_t height = chw[1], width = chw[2];
  if (height <= 2 || width <= 2) return keep(from, chw, strength, to);
  const Blend blend(1.0 + strength);
  for (int64_t c = 0; c < chw[0]; ++c)
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x) {
        const uint8_t* at = from.data() + (c * height + y) * width + x;
        int blurred = *at;
        if (y > 0 && y < height - 1 && x > 0 && x < width - 1) {
          int sum = 4 * *at;
          for (const int64_t row : {-width, int64_t(0), width}) sum += at[row - 1] + at[row] + at[row + 1];
          blurred = (2 * sum + 13) / 26;
        }
        to[size_t(at - from.data())] = blend(*at, float(blurred));
      }
}

void posterize(Bytes from, const Shape&, double strength, Out to) {
  const int mask = -(1 << (8 - int(strength)));
  std::ranges::transform(from, to.begin(), [mask](uint8_t b) { return uint8_t(b & mask); });
}

void solarize(Bytes from, const Shape&, double strength, Out to) {
  std::ranges::transform(from, to.begin(),
                         [strength](uint8_t b) { return double(b) >= strength ? uint8_t(255 - b) : b; });
}

// Applies a function of each channel's bytes.
template <class Change>
void by_channel(Bytes from, const Shape& chw, Out to, const Change& change) {
  const size_t pixels = size_t(area(chw));
  for (size_t c = 0; c < size_t(chw[0]); ++c)
    change(from.subspan(c * pixels, pixels), to.subspan(c * pixels, pixels));
}

void auto_contrast(Bytes from, const Shape& chw, double, Out to) {
  by_channel(from, chw, to, [](Bytes channel, Out out) {
    const auto [low, high] = std::ranges::minmax(channel);
    if (low == high) return (void)std::ranges::copy(channel, out.begin());
    const float least = float(low), scale = 255.0f / (float(high) - least);
    std::ranges::transform(channel, out.begin(),
                           [&](uint8_t b) { return byte_of((float(b) - least) * scale); });
  });
}

void equalize(Bytes from, const Shape& chw, double, Out to) {
  by_channel(from, chw, to, [](Bytes channel, Out out) {
    std::array<int64_t, 256> count{};
    for (const uint8_t b : channel) ++count[b];
    const int64_t of_largest = count[std::ranges::max(channel)];
    const int64_t step = (int64_t(channel.size()) - of_largest) / 255;
    if (step == 0) return (void)std::ranges::copy(channel, out.begin());
    std::array<uint8_t, 256> table{};
    int64_t below = 0;
    for (size_t b = 0; b < 256; below += count[b], ++b)
      table[b] = b == 0 ? 0 : uint8_t(std::min<int64_t>((below + step / 2) / step, 255));
    std::ranges::transform(channel, out.begin(), [&](uint8_t b) { return table[b]; });
  });
}

constexpr ImageOperation operations[] = {
    {"Identity", nullptr, false, keep},
    {"ShearX", share_strength, true, shear_x},
    {"ShearY", share_strength, true, shear_y},
    {"TranslateX", pixel_strength, true, translate_x},
    {"TranslateY", pixel_strength, true, translate_y},
    {"Rotate", degree_strength, true, rotate},
    {"Brightness", share_strength, true, brightness},
    {"Color", share_strength, true, color},
    {"Contrast", share_strength, true, contrast},
    {"Sharpness", share_strength, true, sharpness},
    {"Posterize", bit_strength, false, posterize},
    {"Solarize", threshold_strength, false, solarize},
    {"AutoContrast", nullptr, false, auto_contrast},
    {"Equalize", nullptr, false, equalize},
};

}  // namespace

std::span<const ImageOperation> image_operations() { return operations; }

ImageChange draw_change(KeyedDraws& draws) {
  const int index = draws.below(int(std::size(operations))), bin = draws.below(strength_bins);
  const bool negative = draws.coin();
  const ImageOperation& operation = operations[index];
  const double strength = operation.strength ? operation.strength(bin) : 0;
  return {.operation = index, .strength = operation.either_sign && negative ? -strength : strength};
}

void carry_out(const ImageChange& change, std::span<const uint8_t> from, const Shape& chw,
               std::span<uint8_t> to) {
  operations[change.operation].carry_out(from, chw, change.strength, to);
}

Augmentation carry_out_in_bytes(const Augmentation& drawn, const Shape& chw, std::span<uint8_t> pixels,
                                std::vector<uint8_t>& room) {
  if (drawn.change.operation == 0) return drawn;
  room.clear();
  each_moved(pixels, chw, drawn, [&](size_t, uint8_t byte) { room.push_back(byte); });
  carry_out(drawn.change, room, chw, pixels);
  return {.erased = drawn.erased};
}

void draw_trivial(const AugmentOptions&, const Shape&, KeyedDraws& draws, Augmentation& result) {
  result.change = draw_change(draws);
}

}  // namespace antichain
