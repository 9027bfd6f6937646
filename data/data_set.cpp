#include "data/data_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "framework/files/hash_stream.h"
#include "framework/random.h"

namespace antichain {
namespace {

constexpr int64_t most_hashed_bytes = int64_t(256) << 20;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Calls f(bytes) for so many samples of an array, evenly spread.
template <class F>
void for_each_row(const DataSet& set, size_t array, int64_t bytes, int64_t samples, F&& f) {
  std::vector<std::byte> row(static_cast<size_t>(bytes));
  for (int64_t i = 0; i < samples; ++i) {
    set.read(array, i * set.size() / samples, row);
    f(text_of(row));
  }
}

bool is_number(const SampleArray& array) { return array.spec.shape.rank() == 0; }

}  // namespace

uint64_t DataSet::contents() const {
  HashStream hash;
  const std::vector<SampleArray> all = arrays();
  for (size_t a = 0; a < all.size(); ++a) {
    hash.add(all[a].spec.shape.str());
    const int64_t bytes = std::max<int64_t>(all[a].spec.bytes(), 1);
    const int64_t fits = is_number(all[a]) ? size() : std::max<int64_t>(most_hashed_bytes / bytes, 1);
    for_each_row(*this, a, bytes, std::min(size(), fits), [&](std::string_view row) { hash.add(row); });
  }
  return hash.value();
}

uint64_t DataSet::fingerprint(int64_t most_samples) const {
  std::vector<std::string> shapes;
  for (const SampleArray& array : arrays())
    if (!is_number(array)) shapes.push_back(array.spec.shape.str());
  uint64_t hash = hash_bytes(fmt::format("{}", fmt::join(shapes, ", ")));
  const std::vector<SampleArray> all = arrays();
  const int64_t samples = std::min(size(), most_samples);
  for (int64_t i = 0; i < samples; ++i)
    for (size_t a = 0; a < all.size(); ++a) {
      std::vector<std::byte> row(static_cast<size_t>(all[a].spec.bytes()));
      read(a, i * size() / samples, row);
      int32_t number = 0;
      if (is_number(all[a])) std::memcpy(&number, row.data(), std::min(row.size(), sizeof number));
      hash = mix(hash, is_number(all[a]) ? uint64_t(number) : hash_bytes(text_of(row)));
    }
  return hash;
}

std::vector<std::pair<std::string, std::string>> DataSet::form() const {
  std::vector<std::pair<std::string, std::string>> facts;
  for (const SampleArray& array : arrays())
    facts.emplace_back(fmt::format("the array '{}'", array.name),
                       fmt::format("{} of {}{}", name_of(array.spec.dtype), array.spec.shape.str(),
                                   array.pixels ? ", normalised by " + describe(*array.pixels) : ""));
  return facts;
}

std::vector<SampleArray> ImageSet::arrays() const {
  return {{"images", {image_shape(), DType::u8}, normalisation()}, {"labels", {{}, DType::i32}}};
}

void ImageSet::read(size_t array, int64_t index, std::span<std::byte> out) const {
  if (array == 0) return image(index, {reinterpret_cast<uint8_t*>(out.data()), out.size()});
  const int32_t one = label(index);
  std::memcpy(out.data(), &one, sizeof one);
}

std::vector<std::pair<std::string, std::string>> ImageSet::form() const {
  return {{"the size of an image", image_shape().str()},
          {"the number of classes", std::to_string(classes())},
          {"the pixels' mean and deviation", describe(normalisation())}};
}

std::string describe(const Normalisation& n) {
  return fmt::format("{}, {}", fmt::join(n.mean, " "), fmt::join(n.deviation, " "));
}

}  // namespace antichain
