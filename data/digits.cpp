#include "data/digits.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "framework/bounded_file.h"
#include "framework/error.h"

namespace antichain {
namespace {

constexpr int64_t digit_side = 8, digit_pixels = digit_side * digit_side, all_digits = 1797,
                  test_digits = 360;
constexpr int grey_levels = 16;
constexpr size_t most_digit_text = size_t(1) << 20;  // the file has 264,712 bytes

[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  throw Error(fmt::format("{} {}", file, why),
              "give digits.csv.gz of scikit-learn, which is in the folder sklearn/datasets/data");
}

// Unpacks what gzip packed; other text is returned as it is.
std::string unpacked(std::string bytes, const std::string& file) {
  if (!bytes.starts_with("\x1f\x8b")) return bytes;
  std::string text(most_digit_text, '\0');
  z_stream stream{};
  constexpr int gzip_only = 16 + MAX_WBITS;
  if (inflateInit2(&stream, gzip_only) != Z_OK) throw Error("zlib can't begin to unpack " + file);
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data()), stream.avail_in = uInt(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data()), stream.avail_out = uInt(text.size());
  const bool whole = inflate(&stream, Z_FINISH) == Z_STREAM_END;
  text.resize(stream.total_out);
  inflateEnd(&stream);
  if (!whole) refuse(file, "is cut off, damaged, or not packed digits");
  return text;
}

class Digits : public ImageSet {
 public:
  Digits() {
    for (int digit = 0; digit < 10; ++digit) names_.push_back(std::to_string(digit));
  }
  std::string name() const override { return "digits"; }
  int64_t size() const override { return int64_t(labels_.size()); }
  Shape image_shape() const override { return {1, digit_side, digit_side}; }
  std::span<const std::string> class_names() const override { return names_; }
  int label(int64_t index) const override { return labels_.at(size_t(index)); }
  void image(int64_t index, std::span<uint8_t> out) const override {
    ANTICHAIN_CHECK(int64_t(out.size()) == digit_pixels && index >= 0 && index < size(),
                    "an image of the set");
    std::copy_n(bytes_.begin() + ptrdiff_t(index * digit_pixels), digit_pixels, out.begin());
  }
  // `numbers` are the digit_pixels and the digit.
  void add(const std::vector<int>& numbers) {
    for (int64_t p = 0; p < digit_pixels; ++p)
      bytes_.push_back(uint8_t((2 * 255 * numbers[size_t(p)] + grey_levels) / (2 * grey_levels)));
    labels_.push_back(numbers.back());
  }

 private:
  std::vector<uint8_t> bytes_;
  std::vector<int> labels_;
  std::vector<std::string> names_;
};

// Returns the numbers of a line that is an image, else none.
std::vector<int> numbers_of(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::vector<int> numbers;
  const char *at = line.data(), *const end = at + line.size();
  while (true) {
    int value = -1;
    const auto [next, failed] = std::from_chars(at, end, value);
    const int most = numbers.size() < size_t(digit_pixels) ? grey_levels : 9;
    if (failed != std::errc() || value < 0 || value > most || numbers.size() > size_t(digit_pixels))
      return {};
    numbers.push_back(value);
    if (next == end) break;
    if (*next != ',') return {};
    at = next + 1;
  }
  return int64_t(numbers.size()) == digit_pixels + 1 ? numbers : std::vector<int>();
}

}  // namespace

ImageSplits read_digits(const std::string& file) {
  const std::string text = unpacked(read_bounded(file, int64_t(most_digit_text)), file);
  const auto train = std::make_shared<Digits>(), test = std::make_shared<Digits>();
  int64_t line = 0;
  for (size_t at = 0; at < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::vector<int> numbers = numbers_of(std::string_view(text).substr(at, end - at));
    if (numbers.empty())
      refuse(file, fmt::format("has a line {} that is not 64 numbers of 0 to 16 and a digit", line + 1));
    (line < all_digits - test_digits ? train : test)->add(numbers);
    at = end + 1;
  }
  if (line != all_digits)
    refuse(file, fmt::format("has {} images, not the {} of the digits", line, all_digits));
  return {.train = train, .test = test};
}

}  // namespace antichain
