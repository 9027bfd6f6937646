#include "data/data_set.h"

#include <algorithm>

#include "framework/files/hash_stream.h"

namespace antichain {
namespace {

constexpr int64_t most_hashed_bytes = int64_t(256) << 20;

template <class T>
std::string_view bytes_of(const T* values, size_t count) {
  return {reinterpret_cast<const char*>(values), count * sizeof(T)};
}

}  // namespace

uint64_t DataSet::contents() const {
  HashStream hash;
  hash.add(image_shape().str());
  for (int64_t i = 0; i < size(); ++i) {
    const int64_t one = label(i);
    hash.add(bytes_of(&one, 1));
  }
  std::vector<uint8_t> pixels(size_t(image_shape().elements()));
  const int64_t fits = std::max<int64_t>(most_hashed_bytes / std::max<int64_t>(int64_t(pixels.size()), 1), 1);
  const int64_t hashed = std::min(size(), fits);
  for (int64_t i = 0; i < hashed; ++i) {
    image(i * size() / hashed, pixels);
    hash.add(bytes_of(pixels.data(), pixels.size()));
  }
  return hash.value();
}

}  // namespace antichain
