#include "framework/files/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <type_traits>

#include "framework/error.h"
#include "framework/json.h"

namespace antichain {
namespace {

constexpr uint64_t most_header_bytes = 100'000'000;  // the reference implementation's limit
constexpr int64_t most_extent = int64_t(1) << 53;
constexpr const char* damaged = "the file is truncated or damaged";

struct Entry {
  std::string name, dtype;
  std::vector<int64_t> shape;
  int64_t begin = 0, end = 0;  // within the data
};

// The types of the tensors that a file may have, and what to say of others.
struct Types {
  std::vector<std::string_view> known;
  const char* hint;
};

uint64_t header_length(const std::string& bytes) {
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  return length;
}

// Returns the header as JSON. Throws Error when it is longer than the file, or longer than the format allows.
nlohmann::json parse_header(const std::string& bytes, const std::string& origin) {
  const uint64_t length = header_length(bytes), there = bytes.size() - 8;
  if (length > std::min(there, most_header_bytes)) {
    throw Error(fmt::format("{}: a header of {} bytes, but {}", origin, length,
                            length > there ? fmt::format("the file has only {} more", there)
                                           : fmt::format("{} are the most", most_header_bytes)),
                damaged);
  }
  return parse_json(bytes.substr(8, length), origin + " (header)");
}

Entry read_entry(const std::string& name, JsonReader& header, const Types& types, const std::string& origin) {
  JsonReader fields = header.at(name);
  Entry entry{.name = name};
  entry.dtype = fields.at("dtype").string();
  if (std::ranges::find(types.known, entry.dtype) == types.known.end())
    throw Error(fmt::format("{}: the tensor '{}' is of type {}", origin, name, entry.dtype), types.hint);
  for (const JsonReader& extent : fields.at("shape").elements())
    entry.shape.push_back(extent.integer(0, most_extent));
  const std::vector<JsonReader> offsets = fields.at("data_offsets").elements();
  if (offsets.size() != 2)
    throw Error(fmt::format("{}: the tensor '{}' has {} data_offsets, not two", origin, name, offsets.size()),
                damaged);
  entry.begin = offsets[0].integer(0), entry.end = offsets[1].integer(0);
  fields.done();
  return entry;
}

std::vector<Entry> read_entries(const nlohmann::json& header, const Types& types, const std::string& origin) {
  JsonReader reader(header, origin);
  std::vector<Entry> entries;
  if (!header.is_object()) reader.fail("an object {…} is expected here");
  for (const auto& [name, unused] : header.items())
    if (name != "__metadata__") entries.push_back(read_entry(name, reader, types, origin));
  std::ranges::sort(entries, {}, [](const Entry& e) { return std::tie(e.begin, e.end, e.name); });
  return entries;
}

// Tensors that lie back to back from the first byte to the last neither overlap nor reach beyond the file.
void check_offsets(const std::vector<Entry>& entries, int64_t data_bytes, const std::string& origin) {
  int64_t at = 0;
  for (const Entry& e : entries) {
    if (e.begin != at || e.end < e.begin || e.end > data_bytes) {
      throw Error(fmt::format("{}: the tensor '{}' lies at bytes {} to {} of {}, where {} comes next", origin,
                              e.name, e.begin, e.end, data_bytes, at),
                  damaged);
    }
    at = e.end;
  }
  if (at != data_bytes)
    throw Error(fmt::format("{}: {} bytes belong to no tensor", origin, data_bytes - at), damaged);
}

// This is what a file has: its tensors in the order of the data, and where the data begin.
struct Contents {
  std::vector<Entry> entries;
  size_t data = 0;
};

Contents read_contents(const std::string& bytes, const Types& types, const std::string& origin) {
  if (!is_safetensors(bytes)) throw Error(origin + " is no safetensors file", damaged);
  Contents contents{read_entries(parse_header(bytes, origin), types, origin),
                    size_t(8 + header_length(bytes))};
  check_offsets(contents.entries, int64_t(bytes.size() - contents.data), origin);
  return contents;
}

[[noreturn]] void refuse_size(const Entry& e, int64_t takes, const std::string& origin) {
  throw Error(fmt::format("{}: the tensor '{}' of {} takes {} bytes, but the file has {} for it", origin,
                          e.name, fmt::join(e.shape, " x "), takes, e.end - e.begin),
              damaged);
}

template <class T>
std::vector<double> in_double(const char* from, int64_t bytes) {
  std::vector<T> values(size_t(bytes) / sizeof(T));
  if (bytes > 0) std::memcpy(values.data(), from, size_t(bytes));
  return {values.begin(), values.end()};
}

}  // namespace

bool is_safetensors(const std::string& bytes) { return bytes.size() > 8 && bytes[8] == '{'; }

std::string to_safetensors(const Weights& weights) {
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& t : weights) order.push_back(&t);
  std::stable_partition(order.begin(), order.end(), [](const NamedTensor* t) { return !t->is_float(); });

  nlohmann::ordered_json header = {{"__metadata__", {{"format", "pt"}}}};
  int64_t at = 0;
  for (const NamedTensor* t : order) {
    header[t->name] = {{"dtype", t->is_float() ? "F32" : "I64"},
                       {"shape", t->shape},
                       {"data_offsets", {at, at + t->bytes()}}};
    at += t->bytes();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');

  const uint64_t length = text.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  bytes.reserve(bytes.size() + text.size() + size_t(at));
  bytes += text;
  for (const NamedTensor* t : order) bytes.append(static_cast<const char*>(t->data()), size_t(t->bytes()));
  return bytes;
}

namespace {

// IEEE 754's binary16: a sign, 5 bits of exponent and 10 of fraction. Every such number is a float32.
float from_half(uint16_t half) {
  const uint32_t sign = uint32_t(half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 1023;
  if (exponent == 0) return std::copysign(float(fraction) * 0x1p-24f, sign ? -1.0f : 1.0f);
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

// A StoredType is how a file holds numbers that weights have as float32 or int64.
struct StoredType {
  int64_t bytes;
  bool is_float;
  void (*read)(const char* from, NamedTensor& to);
};

template <class Stored, class Number, auto converted>
constexpr StoredType stored = {sizeof(Stored), std::is_same_v<Number, float>,
                               [](const char* from, NamedTensor& to) {
                                 for (Number& number : std::get<std::vector<Number>>(to.values)) {
                                   Stored value;
                                   std::memcpy(&value, from, sizeof value);
                                   from += sizeof value;
                                   number = converted(value);
                                 }
                               }};

// Masks are of bytes.
const std::map<std::string_view, StoredType>& stored_types() {
  static const std::map<std::string_view, StoredType> all = {
      {"F64", stored<double, float, [](double x) { return float(x); }>},
      {"F32", stored<float, float, [](float x) { return x; }>},
      {"F16", stored<uint16_t, float, from_half>},
      {"BF16", stored<uint16_t, float, [](uint16_t x) { return std::bit_cast<float>(uint32_t(x) << 16); }>},
      {"I64", stored<int64_t, int64_t, [](int64_t x) { return x; }>},
      {"U8", stored<uint8_t, int64_t, [](uint8_t x) { return int64_t(x); }>},
      {"BOOL", stored<uint8_t, int64_t, [](uint8_t x) { return int64_t(x); }>},
  };
  return all;
}

}  // namespace

Weights from_safetensors(const std::string& bytes, const std::string& origin) {
  Types known{{}, "weights are F32, or F16, BF16 or F64, and become F32; counts and masks I64, U8 or BOOL"};
  for (const auto& [name, unused] : stored_types()) known.known.push_back(name);
  const auto [entries, data] = read_contents(bytes, known, origin);
  Weights weights;
  for (const Entry& e : entries) {
    const StoredType& type = stored_types().at(e.dtype);
    // A byte becomes an int64.
    NamedTensor tensor = make_tensor(e.name, e.shape, type.is_float, 8 * (e.end - e.begin), origin);
    if (const int64_t takes = tensor.elements() * type.bytes; takes != e.end - e.begin)
      refuse_size(e, takes, origin);
    type.read(bytes.data() + data + e.begin, tensor);
    weights.add(std::move(tensor));
  }
  return weights;
}

std::vector<NamedNumbers> numbers_from_safetensors(const std::string& bytes, const std::string& origin) {
  const auto [entries, data] =
      read_contents(bytes, {{"F64", "F32", "I64", "I32"}, "F64, F32, I64 and I32 are read"}, origin);
  std::vector<NamedNumbers> all;
  for (const Entry& e : entries) {
    const bool wide = e.dtype == "F64" || e.dtype == "I64";
    int64_t takes = wide ? 8 : 4;
    for (const int64_t extent : e.shape)
      if (__builtin_mul_overflow(takes, extent, &takes)) takes = std::numeric_limits<int64_t>::max();
    if (takes != e.end - e.begin) refuse_size(e, takes, origin);
    const char* from = bytes.data() + data + e.begin;
    all.push_back({e.name, e.shape,
                   e.dtype == "F64"   ? in_double<double>(from, takes)
                   : e.dtype == "F32" ? in_double<float>(from, takes)
                   : wide             ? in_double<int64_t>(from, takes)
                                      : in_double<int32_t>(from, takes)});
  }
  return all;
}

}  // namespace antichain
