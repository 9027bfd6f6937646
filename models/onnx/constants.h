// The constants of an ONNX file are its initializers, and what follows from them without the network's input.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "models/onnx/messages.h"

namespace antichain::onnx {

using Constant = std::shared_ptr<const NamedTensor>;

class Constants {
 public:
  // The model must live as long. `bytes` are those of its file, which limit how much is computed.
  Constants(const Model&, std::string origin, size_t bytes);

  bool has(const std::string& name) const { return files_.contains(name) || made_.contains(name); }
  // Returns nullptr where there is none. Throws Error when it can't be read.
  Constant find(const std::string& name);
  void add(const std::string& name, NamedTensor);

  // Returns the output of a node that computes with constants only (models/onnx/fold.h), or nothing where
  // this is not such a node.
  std::optional<NamedTensor> fold(const Node&);

  // Counts numbers that are computed from the file's. Throws Error when they are many times as many as the
  // file has.
  void take(int64_t numbers);

  const std::string& origin() const { return origin_; }

 private:
  std::string origin_;
  int64_t left_;
  std::unordered_map<std::string, const Tensor*> files_;
  std::unordered_map<std::string, Constant> made_;
};

constexpr size_t most_integers = 1 << 16;  // of a constant that is computed with

const std::vector<int64_t>* as_integers(const NamedTensor&);  // nullptr for floats
// Returns the integers of a constant. Throws Error when it has fractions or too many numbers.
std::vector<int64_t> integers_of(const NamedTensor&, const std::string& origin);
// Returns the one number that a constant has, or nothing where it has several.
std::optional<double> number_of(const NamedTensor&);
bool is_number(const Constant&, double value);  // false for no constant
// Returns an axis that may count from the end, or −1 where there is no such axis.
int64_t axis_in(int64_t axis, int64_t rank);
// Returns where a slice of an axis begins or ends. A negative place counts from the axis's end. The result is
// the nearest place within `least` to extent + least, where `least` is −1 for steps backwards.
int64_t place_in(int64_t place, int64_t extent, int64_t least = 0);

}  // namespace antichain::onnx
