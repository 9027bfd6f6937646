#include "models/onnx/wire.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "framework/error.h"

namespace antichain {
namespace {

// A message becomes a struct of some 200 bytes, a name a string of 32. So they take 300 MB at most.
constexpr size_t most_wire_parts = 24'000'000, parts_of_message = 16, parts_of_name = 2;

[[noreturn]] void refuse_wire(const WireBudget& budget, const std::string& why) {
  throw Error(fmt::format("{} is no ONNX file: {}", budget.origin, why), "the file is truncated or damaged");
}

uint64_t take_varint(std::string_view& left, const WireBudget& budget) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (left.empty()) refuse_wire(budget, "a number is cut off");
    const auto byte = static_cast<unsigned char>(left.front());
    left.remove_prefix(1);
    value |= uint64_t(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  refuse_wire(budget, "a number has more than 64 bits");
}

std::string_view take_bytes(std::string_view& left, uint64_t count, const WireBudget& budget) {
  if (count > left.size())
    refuse_wire(budget, fmt::format("a field of {} bytes, but {} are there", count, left.size()));
  const std::string_view taken = left.substr(0, size_t(count));
  left.remove_prefix(size_t(count));
  return taken;
}

// Files are little-endian, and so are the machines that this is for.
template <class T>
T fixed(std::string_view bytes) {
  static_assert(std::endian::native == std::endian::little);
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

template <class T>
void append_fixed(std::string_view bytes, const WireBudget& budget, std::vector<T>& to) {
  if (bytes.size() % sizeof(T) != 0) refuse_wire(budget, "an array ends within a number");
  if (bytes.empty()) return;
  const size_t before = to.size();
  to.resize(before + bytes.size() / sizeof(T));
  std::memcpy(to.data() + before, bytes.data(), bytes.size());
}

}  // namespace

void WireBudget::take(size_t more) {
  parts += more;
  if (parts > most_wire_parts)
    throw Error(fmt::format("{} has too many nodes, attributes, names and integers", origin),
                "such a network is too large");
}

void WireField::want(WireType wanted) const {
  if (type != wanted) refuse_wire(*budget, fmt::format("field {} has another type", number));
}

int64_t WireField::integer() const {
  want(WireType::varint);
  return int64_t(value);
}

float WireField::real() const {
  want(WireType::fixed32);
  return std::bit_cast<float>(uint32_t(value));
}

std::string_view WireField::message() const {
  want(WireType::bytes);
  budget->take(parts_of_message);
  return bytes;
}

std::string WireField::text() const {
  want(WireType::bytes);
  budget->take(parts_of_name);
  return std::string(bytes);
}

void WireField::append_to(std::vector<int64_t>& to) const {
  if (type != WireType::bytes) {
    budget->take();
    to.push_back(integer());
    return;
  }
  for (std::string_view left = bytes; !left.empty();) {
    budget->take();
    to.push_back(int64_t(take_varint(left, *budget)));
  }
}

void WireField::append_to(std::vector<float>& to) const {
  if (type == WireType::bytes)
    append_fixed(bytes, *budget, to);
  else
    to.push_back(real());
}

void WireField::append_to(std::vector<double>& to) const {
  if (type == WireType::bytes) {
    append_fixed(bytes, *budget, to);
  } else {
    want(WireType::fixed64);
    to.push_back(std::bit_cast<double>(value));
  }
}

bool WireReader::next(WireField& field) {
  if (left_.empty()) return false;
  const uint64_t tag = take_varint(left_, *budget_);
  field = {.number = uint32_t(tag >> 3), .type = WireType(tag & 7), .budget = budget_};
  if (tag >> 3 == 0 || tag >> 32 != 0) refuse_wire(*budget_, "a field has no number");
  switch (field.type) {
    case WireType::varint:
      field.value = take_varint(left_, *budget_);
      break;
    case WireType::fixed64:
      field.value = fixed<uint64_t>(take_bytes(left_, 8, *budget_));
      break;
    case WireType::fixed32:
      field.value = fixed<uint32_t>(take_bytes(left_, 4, *budget_));
      break;
    case WireType::bytes:
      field.bytes = take_bytes(left_, take_varint(left_, *budget_), *budget_);
      break;
    default:
      refuse_wire(*budget_, fmt::format("field {} has the unknown type {}", field.number, tag & 7));
  }
  return true;
}

void WireWriter::varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) out_ += char(value | 0x80);
  out_ += char(value);
}

void WireWriter::integer(uint32_t field, int64_t value) {
  varint(uint64_t(field) << 3 | uint64_t(WireType::varint));
  varint(uint64_t(value));
}

void WireWriter::real(uint32_t field, float value) {
  varint(uint64_t(field) << 3 | uint64_t(WireType::fixed32));
  out_.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void WireWriter::bytes(uint32_t field, std::string_view bytes) {
  varint(uint64_t(field) << 3 | uint64_t(WireType::bytes));
  varint(bytes.size());
  out_ += bytes;
}

}  // namespace antichain
