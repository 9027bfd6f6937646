// Reads and writes the wire format of Protocol Buffers (protobuf.dev, "Encoding"), in which ONNX files are.
//
// Reading copies no bytes, and every length is compared with what is there. A WireBudget limits how many
// messages, names and integers a whole file may have, so that a small file can't ask for much memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace antichain {

struct WireBudget {
  std::string origin;  // what errors call the file
  size_t parts = 0;    // counted so far

  void take(size_t more = 1);  // throws Error when there are too many
};

enum class WireType { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

// A WireField is one field of a message. Its accessors throw Error when it has another type.
struct WireField {
  uint32_t number = 0;
  WireType type = WireType::varint;
  uint64_t value = 0;      // of a varint, or the bits of a fixed number
  std::string_view bytes;  // of a string, a message, or packed numbers
  WireBudget* budget = nullptr;

  int64_t integer() const;
  float real() const;
  std::string_view message() const;
  std::string text() const;
  // Append the numbers of a repeated field, packed or not.
  void append_to(std::vector<int64_t>&) const;
  void append_to(std::vector<float>&) const;
  void append_to(std::vector<double>&) const;

 private:
  void want(WireType) const;
};

class WireReader {
 public:
  WireReader(std::string_view bytes, WireBudget& budget) : left_(bytes), budget_(&budget) {}

  // Reads the next field, and returns false at the end. Throws Error when the bytes are no field.
  bool next(WireField&);

 private:
  std::string_view left_;
  WireBudget* budget_;
};

class WireWriter {
 public:
  void integer(uint32_t field, int64_t);
  void real(uint32_t field, float);
  void bytes(uint32_t field, std::string_view);  // a string, or a message
  void message(uint32_t field, const WireWriter& of) { bytes(field, of.out_); }
  const std::string& written() const { return out_; }

 private:
  void varint(uint64_t);
  std::string out_;
};

}  // namespace antichain
