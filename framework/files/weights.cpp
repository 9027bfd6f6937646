#include "framework/files/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "framework/bounded_file.h"
#include "framework/error.h"
#include "framework/files/checkpoint_weights.h"
#include "framework/files/hdf5.h"
#include "framework/files/safetensors.h"
#include "framework/json.h"

namespace antichain {

static_assert(std::endian::native == std::endian::little, "both formats are written as the memory has them");

namespace {

constexpr size_t most_dimensions = 32;  // HDF5's

// Returns the product without overflow; −1 when it is above `most`, or an extent is negative.
int64_t product(const std::vector<int64_t>& shape, int64_t most) {
  if (std::ranges::find(shape, 0) != shape.end())
    return std::ranges::any_of(shape, [](int64_t d) { return d < 0; }) ? -1 : 0;
  int64_t elements = 1;
  for (const int64_t d : shape) {
    if (d < 0 || d > most / elements) return -1;
    elements *= d;
  }
  return elements;
}

}  // namespace

int64_t NamedTensor::elements() const {
  return std::visit([](const auto& v) { return int64_t(v.size()); }, values);
}

std::string NamedTensor::shape_text() const {
  return shape.empty() ? "a scalar" : fmt::format("{}", fmt::join(shape, " x "));
}

const void* NamedTensor::data() const {
  return std::visit([](const auto& v) { return static_cast<const void*>(v.data()); }, values);
}

void* NamedTensor::data() { return const_cast<void*>(std::as_const(*this).data()); }

bool NamedTensor::operator==(const NamedTensor& other) const {
  return name == other.name && shape == other.shape && is_float() == other.is_float() &&
         elements() == other.elements() &&
         (elements() == 0 || std::memcmp(data(), other.data(), size_t(bytes())) == 0);
}

NamedTensor make_tensor(std::string name, std::vector<int64_t> shape, bool is_float, int64_t most_bytes,
                        const std::string& origin) {
  const int64_t elements =
      shape.size() > most_dimensions ? -1 : product(shape, most_bytes / (is_float ? 4 : 8));
  if (elements < 0) {
    throw Error(fmt::format("{}: the tensor '{}' says it is {}, more than the file has", origin, name,
                            fmt::join(shape, " x ")),
                "the file is truncated or damaged");
  }
  NamedTensor tensor{std::move(name), std::move(shape), {}};
  if (is_float)
    tensor.values = std::vector<float>(size_t(elements));
  else
    tensor.values = std::vector<int64_t>(size_t(elements));
  return tensor;
}

void Weights::add(NamedTensor tensor) {
  const auto spoils = [](unsigned char c) { return c < 0x20 || c == 0x7F; };
  const std::string path = "/" + tensor.name + "/";
  const auto has = [&](const char* part) { return path.find(part) != std::string::npos; };
  if (has("//") || has("/./") || has("/../") || std::ranges::any_of(tensor.name, spoils))
    throw Error(fmt::format("'{}' can't be the name of a tensor", tensor.name),
                "use a name without control characters and without empty parts between slashes, such as "
                "conv1.weight");
  if (!places_.emplace(tensor.name, tensors_.size()).second)
    throw Error(fmt::format("there are two tensors of the name '{}'", tensor.name), "names have to differ");
  tensors_.push_back(std::move(tensor));
}

const NamedTensor* Weights::find(std::string_view name) const {
  const auto place = places_.find(name);
  return place == places_.end() ? nullptr : &tensors_[place->second];
}

std::string describe_bad_number(const NamedTensor& tensor) {
  if (!tensor.is_float()) return "";
  const bool variance = tensor.name.ends_with("running_var");
  const auto& values = std::get<0>(tensor.values);
  const auto bad =
      std::ranges::find_if(values, [&](float x) { return !std::isfinite(x) || (variance && x < 0); });
  if (bad == values.end()) return "";
  const std::string what = std::isnan(*bad)   ? "a NaN"
                           : std::isinf(*bad) ? "an infinite number"
                                              : fmt::format("the variance {}", *bad);
  return fmt::format("'{}' has {} (element {} of {})", tensor.name, what, bad - values.begin() + 1,
                     values.size());
}

void check_numbers(const Weights& weights, std::span<const std::string> names, const std::string& origin) {
  for (const std::string& name : names) {
    const NamedTensor* tensor = weights.find(name);
    const std::string bad = tensor ? describe_bad_number(*tensor) : "";
    if (!bad.empty())
      throw Error(fmt::format("{}: {}, with which nothing can be computed", origin, bad),
                  "take weights from before they went wrong", ExitCode::not_a_number);
  }
}

std::string encode(const Weights& weights, WeightFormat format) {
  return format == WeightFormat::hdf5 ? to_hdf5(weights) : to_safetensors(weights);
}

void refuse_onnx(const std::string& file) {
  if (file.ends_with(onnx_ending))
    throw Error(fmt::format("{} is an ONNX file, which only Antichain's Python package reads", file),
                fmt::format("python3 -m antichain.onnx import {} NAME.antichain makes a folder of it", file));
}

Weights decode(const std::string& bytes, const std::string& origin, int64_t network_bytes) {
  refuse_onnx(origin);
  constexpr int64_t packed = 8;  // what shrinks weights that mean something is less
  const int64_t most = network_bytes > 0 ? 2 * network_bytes + packed * int64_t(bytes.size()) : INT64_MAX;
  if (is_hdf5(bytes)) return from_hdf5(bytes, origin, most);
  if (is_safetensors(bytes)) return from_safetensors(bytes, origin);
  const bool zip = bytes.starts_with("PK\x03\x04");  // torch.save
  throw Error(fmt::format("{} is neither an HDF5 nor a safetensors file", origin),
              bytes.empty() ? "the file is empty"
              : zip ? "it looks like one of torch.save, which python3 -m antichain.pytorch weights converts"
                    : "antichain export writes either");
}

namespace {

constexpr std::string_view index_ending = ".index.json";
constexpr int64_t most_index_bytes = int64_t(64) << 20;

// Reads the files of an index: {"weight_map": {"conv1.weight": "model-00001-of-00002.safetensors", …}}.
Weights read_listed(const std::string& index) {
  const nlohmann::json json = parse_json(read_bounded(index, most_index_bytes), index);
  JsonReader reader(json, index);
  const JsonReader map = reader.at("weight_map");
  if (!map.is_object()) map.fail("an object {…} is expected here");
  std::map<std::string, size_t> files;  // with the number of tensors in each
  for (const auto& [name, file] : json.at("weight_map").items()) {
    if (!file.is_string() || file.get<std::string>().find('/') != std::string::npos)
      map.fail(fmt::format("the file of '{}' is no name of a file beside it", name));
    ++files[file.get<std::string>()];
  }
  Weights all;
  for (const auto& [name, count] : files) {
    const std::string file = (std::filesystem::path(index).parent_path() / name).string();
    const Weights some = decode(read_bounded(file, most_weights_bytes), file);
    for (const NamedTensor& tensor : some) {
      if (json.at("weight_map").value(tensor.name, "") != name)
        throw Error(fmt::format("{} has the tensor '{}', but {} does not say so", file, tensor.name, index),
                    "take the index and the files of one model");
      all.add(tensor);
    }
    if (some.size() != count)
      throw Error(fmt::format("{} has {} tensors, but {} lists {}", file, some.size(), index, count),
                  "take the index and the files of one model");
  }
  return all;
}

}  // namespace

bool are_several_files(const std::string& path) {
  return is_in_checkpoint(path) || path.ends_with(index_ending);
}

Weights read_weights(const std::string& file, int64_t network_bytes) {
  if (is_in_checkpoint(file)) return read_checkpoint_weights(file);
  if (file.ends_with(index_ending)) return read_listed(file);
  return decode(read_bounded(file, most_weights_bytes), file, network_bytes);
}

void write_weights(const std::string& file, const Weights& weights, WeightFormat format) {
  write_file(file, encode(weights, format));
}

}  // namespace antichain
