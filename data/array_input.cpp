#include "data/array_input.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "framework/error.h"

namespace antichain {
namespace {

std::vector<int64_t> extents_above_one(std::span<const int64_t> shape) {
  std::vector<int64_t> extents;
  std::ranges::copy_if(shape, std::back_inserter(extents), [](int64_t extent) { return extent != 1; });
  return extents;
}

// `From` are whole numbers, `To` may be floats that do not have all of them.
template <class From, class To>
void convert(const std::byte* stored, int64_t count, std::byte* out, const std::string& name, int64_t index) {
  const From* from = reinterpret_cast<const From*>(stored);
  for (int64_t i = 0; i < count; ++i) {
    reinterpret_cast<To*>(out)[i] = To(from[i]);
    if (int64_t(To(from[i])) != int64_t(from[i]))
      throw Error(fmt::format("sample {} of the array '{}' has the number {}, which float32 does not have",
                              index, name, from[i]),
                  "store float32, or smaller numbers");
  }
}

}  // namespace

size_t find_array(const DataSet& data, const std::string& name) {
  std::vector<std::string> names;
  for (const SampleArray& array : data.arrays()) names.push_back(array.name);
  return find_array(names, name);
}

size_t find_array(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return size_t(found - names.begin());
  throw Error(fmt::format("the model has an input '{}' that no data set fills", name),
              fmt::format("name inputs {}; or name the arrays of an HDF5 file by --inputs and --targets",
                          fmt::join(names, " or ")));
}

ArrayInput::ArrayInput(std::shared_ptr<const DataSet> data, const std::string& name, const TensorSpec& wanted)
    : data_(std::move(data)),
      array_(find_array(*data_, name)),
      stored_(data_->arrays()[array_]),
      wanted_(wanted.dtype),
      elements_(stored_.spec.shape.elements()),
      normaliser_(stored_.pixels.value_or(Normalisation())) {
  const std::vector<int64_t> sample(wanted.shape.begin() + 1, wanted.shape.end());
  if (extents_above_one(sample) != extents_above_one({stored_.spec.shape.begin(), stored_.spec.shape.end()}))
    throw Error(fmt::format("the array '{}' of {} has {} for each sample, but the network takes {}", name,
                            data_->name(), stored_.spec.shape.str(), Shape(sample).str()),
                "give data that fit, or write the network again for these");
  if (stored_.spec.dtype == DType::f32 && wanted_ != DType::f32)
    throw Error(fmt::format("the array '{}' of {} has float32, but the network takes whole numbers", name,
                            data_->name()),
                "store integers");
  row_.resize(size_t(stored_.spec.bytes()));
}

void ArrayInput::read(int64_t index, std::byte* out) const {
  if (stored_.spec.dtype == wanted_) return data_->read(array_, index, {out, size_t(sample_bytes())});
  data_->read(array_, index, row_);
  if (stored_.spec.dtype == DType::i32)
    convert<int32_t, float>(row_.data(), elements_, out, stored_.name, index);
  else if (wanted_ == DType::i32)
    convert<uint8_t, int32_t>(row_.data(), elements_, out, stored_.name, index);
  else if (!stored_.pixels)
    convert<uint8_t, float>(row_.data(), elements_, out, stored_.name, index);
  else
    normaliser_({reinterpret_cast<const uint8_t*>(row_.data()), row_.size()}, stored_.spec.shape, {},
                {reinterpret_cast<float*>(out), size_t(elements_)});
}

void ArrayInput::pad(std::byte* out) const {
  std::memset(out, wanted_ == DType::i32 ? 0xff : 0, size_t(sample_bytes()));
}

}  // namespace antichain
