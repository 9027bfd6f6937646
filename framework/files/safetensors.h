// Reads and writes the safetensors format (github.com/huggingface/safetensors, its README): 8 bytes with the
// length of a header; the header, which is a JSON object of {name: {dtype, shape, data_offsets}}; then the
// tensors' bytes back to back.
//
// Reading is strict: every byte belongs to exactly one tensor, and names differ.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/files/weights.h"

namespace antichain {

bool is_safetensors(const std::string& bytes);  // begins like one
// Writes I64 tensors before F32, so that every tensor is aligned; readers that map the file rely on that.
// Otherwise the order is kept.
std::string to_safetensors(const Weights&);
// Returns the tensors in the order of the data: floats of 2, 4 and 8 bytes as float32, and I64, U8 and BOOL
// as int64. Throws Error naming `origin` and the tensor.
Weights from_safetensors(const std::string& bytes, const std::string& origin);

// NamedNumbers holds numbers of any type that we read, in double precision, which is exact for float64,
// float32 and int32.
struct NamedNumbers {
  std::string name;
  std::vector<int64_t> shape;  // {} is a scalar
  std::vector<double> values;
};
// Reads F64, F32, I64 and I32, which need not be weights. Otherwise it is as strict as from_safetensors.
std::vector<NamedNumbers> numbers_from_safetensors(const std::string& bytes, const std::string& origin);

}  // namespace antichain
