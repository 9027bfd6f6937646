// The messages of an ONNX file (github.com/onnx/onnx, onnx.proto) are plain structs here. They have what
// networks of inference need; other fields are skipped.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/files/weights.h"

namespace antichain::onnx {

// The types of tensors that are read, by the format's numbers.
enum Type : int64_t { type_float = 1, type_int32 = 6, type_int64 = 7, type_bool = 9, type_double = 11 };

struct Tensor {
  std::string name;
  std::vector<int64_t> dims;
  int64_t type = type_float;
  std::string_view raw;  // of the file's bytes, or of those of external data
  std::vector<float> floats;
  std::vector<int64_t> integers;
  std::vector<double> doubles;
  bool external = false;  // in another file:
  std::string location;
  int64_t offset = 0, length = -1;  // −1: to the end of that file
};

// The types of attributes that are written, by the format's numbers.
enum AttributeType : int64_t { type_real = 1, type_integer = 2, type_text = 3, type_integers = 7 };

struct Attribute {
  std::string name;
  int64_t type = type_integer;
  float real = 0;
  int64_t integer = 0;
  std::string text;
  Tensor tensor;  // of `has_tensor`
  std::vector<float> reals;
  std::vector<int64_t> integers;
  bool has_tensor = false, has_graph = false;
};

struct Node {
  std::string name, op, domain;
  std::vector<std::string> inputs, outputs;  // "" stands for an input that is left out
  std::vector<Attribute> attributes;

  const Attribute* find(std::string_view name) const;  // nullptr when there is none
  int64_t integer(std::string_view name, int64_t otherwise) const;
  float real(std::string_view name, float otherwise) const;
  std::string text(std::string_view name, const std::string& otherwise) const;
  std::vector<int64_t> integers(std::string_view name, std::vector<int64_t> otherwise = {}) const;
  const std::string& input(size_t i) const;  // "" when there are fewer

  Node& set(std::string name, int64_t);
  Node& set(std::string name, float);
  Node& set(std::string name, std::string_view);
  Node& set(std::string name, std::vector<int64_t>);
};

struct ValueInfo {
  std::string name;
  int64_t type = type_float;
  std::vector<int64_t> dims;        // −1 where the file leaves an extent open
  std::vector<std::string> params;  // the names of those, as many as dims
};

struct FileGraph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  std::vector<ValueInfo> inputs, outputs;
};

struct Opset {
  std::string domain;
  int64_t version = 0;
};

struct Model {
  int64_t ir_version = 0;
  std::string producer, producer_version;
  std::vector<Opset> opsets;
  FileGraph graph;
};

// Returns the messages of a file's bytes, which must live as long as they do. Throws Error naming `origin`
// when they are no ONNX file, or are too many.
Model parse(std::string_view bytes, const std::string& origin);
std::string serialise(const Model&);

// Returns the numbers of a tensor: floats, or 64-bit integers. Throws Error naming `origin` and the tensor
// when its type is not one of the above, or there are more or fewer numbers than its shape has.
NamedTensor numbers_of(const Tensor&, const std::string& origin);

}  // namespace antichain::onnx
