#include "data/image_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "framework/bounded_file.h"
#include "framework/error.h"

namespace antichain {
namespace {

constexpr std::string_view png_signature("\x89PNG\r\n\x1a\n", 8), jpeg_signature("\xff\xd8\xff", 3);

bool begins_with(std::span<const uint8_t> bytes, std::string_view signature) {
  return bytes.size() >= signature.size() && std::equal(signature.begin(), signature.end(), bytes.begin(),
                                                        [](char a, uint8_t b) { return uint8_t(a) == b; });
}

// Reads numbers of a TIFF structure in its own byte order; 0 beyond the end.
class Tiff {
 public:
  explicit Tiff(std::span<const uint8_t> bytes) : bytes_(bytes) {
    big_ = bytes.size() >= 2 && bytes[0] == 'M' && bytes[1] == 'M';
  }
  bool is_one() const { return number(0, 2) == (big_ ? 0x4D4Du : 0x4949u) && number(2, 2) == 42; }
  uint32_t number(size_t at, size_t count) const {
    uint32_t value = 0;
    if (at > bytes_.size() || count > bytes_.size() - at) return 0;
    for (size_t i = 0; i < count; ++i) value = value << 8 | bytes_[at + (big_ ? i : count - 1 - i)];
    return value;
  }

 private:
  std::span<const uint8_t> bytes_;
  bool big_ = false;
};

}  // namespace

void refuse_image(const std::string& origin, const std::string& why) {
  throw Error(fmt::format("{} is damaged or no image ({})", origin, why),
              "replace it, remove it, or give --skip-damaged");
}

void check_image_size(int64_t height, int64_t width, int64_t most_pixels, const std::string& origin) {
  if (height < 1 || width < 1 || height > most_pixels / width)
    refuse_image(origin, fmt::format("{} x {} pixels", height, width));
}

int exif_orientation(std::span<const uint8_t> block) {
  constexpr std::string_view mark("Exif\0\0", 6);
  if (!begins_with(block, mark)) return 1;
  const Tiff tiff(block.subspan(mark.size()));
  if (!tiff.is_one()) return 1;
  const size_t directory = tiff.number(4, 4);
  const uint32_t entries = tiff.number(directory, 2);
  for (uint32_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + 12 * size_t(i);
    if (tiff.number(entry, 2) != 0x0112) continue;
    const uint32_t value = tiff.number(entry + 8, 2);
    return value >= 1 && value <= 8 ? int(value) : 1;
  }
  return 1;
}

Image upright(Image image, int orientation) {
  if (orientation <= 1) return image;
  const bool exchanged = orientation >= 5;
  Image turned{.height = exchanged ? image.width : image.height,
               .width = exchanged ? image.height : image.width,
               .pixels = std::vector<uint8_t>(image.pixels.size())};
  // These say whether the stored row and column count from the other end, by orientation 1 … 8.
  const bool rows_back = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  const bool columns_back = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  for (int y = 0; y < turned.height; ++y) {
    for (int x = 0; x < turned.width; ++x) {
      int row = exchanged ? x : y, column = exchanged ? y : x;
      // In 5 to 8 the displayed x runs along stored rows.
      if (exchanged ? columns_back : rows_back) row = image.height - 1 - row;
      if (exchanged ? rows_back : columns_back) column = image.width - 1 - column;
      for (int c = 0; c < 3; ++c)
        turned.pixels[(size_t(y) * size_t(turned.width) + size_t(x)) * 3 + size_t(c)] =
            image.pixels[(size_t(row) * size_t(image.width) + size_t(column)) * 3 + size_t(c)];
    }
  }
  return turned;
}

Image decode_image(std::span<const uint8_t> bytes, const std::string& origin, int64_t most_pixels) {
  if (begins_with(bytes, jpeg_signature)) return decode_jpeg(bytes, origin, most_pixels);
  if (begins_with(bytes, png_signature)) return decode_png(bytes, origin, most_pixels);
  refuse_image(origin, bytes.empty() ? "the file is empty" : "it begins like neither JPEG nor PNG");
}

Image read_image(const std::string& file) {
  const std::string bytes = read_bounded(file, most_image_bytes);
  return decode_image({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, file);
}

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
