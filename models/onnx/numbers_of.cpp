// A tensor of an ONNX file has its numbers as raw bytes, or as a field for its type.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "framework/error.h"
#include "models/graph_file.h"
#include "models/onnx/messages.h"

namespace antichain::onnx {
namespace {

constexpr size_t most_dims = 16;

template <class Raw, class To>
void copy_raw(std::string_view raw, std::vector<To>& to) {
  for (size_t i = 0; i < to.size(); ++i) {
    Raw value;
    std::memcpy(&value, raw.data() + i * sizeof value, sizeof value);
    to[i] = To(value);
  }
}

int64_t bytes_of_number(int64_t type) {
  switch (type) {
    case type_double:
    case type_int64:
      return 8;
    case type_bool:
      return 1;
    case type_float:
    case type_int32:
      return 4;
    default:
      return 0;
  }
}

template <class To, class From>
bool take_values(const std::vector<From>& from, std::vector<To>& to) {
  if (from.size() != to.size()) return false;
  std::ranges::transform(from, to.begin(), [](From v) { return To(v); });
  return true;
}

}  // namespace

NamedTensor numbers_of(const Tensor& t, const std::string& origin) {
  const auto refuse = [&](const std::string& why, const std::string& hint) {
    throw Error(fmt::format("{}: the tensor '{}' {}", origin, t.name.substr(0, most_graph_name_bytes), why),
                hint);
  };
  const int64_t each = bytes_of_number(t.type);
  if (each == 0)
    refuse(fmt::format("has the type {}", t.type), "float32, float64, int32, int64 and bool are read");
  if (t.dims.size() > most_dims) refuse("has too many axes", "");
  const bool is_float = t.type == type_float || t.type == type_double;
  const size_t there = t.raw.empty() ? std::max({t.floats.size(), t.integers.size(), t.doubles.size()})
                                     : t.raw.size() / size_t(each);
  NamedTensor tensor = make_tensor(t.name, t.dims, is_float, int64_t(there) * 8, origin);
  const auto fill = [&](auto& to) {
    if (t.raw.empty()) {
      bool taken = false;
      if constexpr (std::is_same_v<decltype(to), std::vector<float>&>)
        taken = take_values(t.floats, to) || take_values(t.doubles, to);
      else
        taken = take_values(t.integers, to);
      if (!taken)
        refuse(fmt::format("of {} has {} numbers", tensor.shape_text(), there), "the file is damaged");
      return;
    }
    if (t.raw.size() != to.size() * size_t(each))
      refuse(fmt::format("of {} has {} bytes", tensor.shape_text(), t.raw.size()), "the file is damaged");
    switch (t.type) {
      case type_float:
        copy_raw<float>(t.raw, to);
        break;
      case type_double:
        copy_raw<double>(t.raw, to);
        break;
      case type_int32:
        copy_raw<int32_t>(t.raw, to);
        break;
      case type_int64:
        copy_raw<int64_t>(t.raw, to);
        break;
      default:
        copy_raw<int8_t>(t.raw, to);
    }
  };
  std::visit(fill, tensor.values);
  return tensor;
}

}  // namespace antichain::onnx
