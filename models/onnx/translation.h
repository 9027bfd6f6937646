// A Translation makes our nodes from ONNX's. The table of operators is in read_operators.cpp.
//
// A Value is a tensor as the file sees it: a node's output, and the order in which its axes are read. So a
// Transpose costs nothing until an operator needs the axes in their order: a LayerNorm or a MatMul over the
// last axis of N x H x W x C works on the N x C x H x W that is stored.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "framework/graph.h"
#include "layers/window.h"
#include "models/onnx/constants.h"

namespace antichain::onnx {

// Unsupported says what can't be translated: "a mean over the samples". The caller says where it is.
struct Unsupported {
  std::string what;
};

struct Value {
  NodeId node = -1;
  std::vector<int> order;  // axis i is the output's axis order[i]
  Padding zeros = 0;       // around an image, for the operator that follows
  bool is_plain() const;
  bool is_padded() const { return !(zeros == Padding(0)); }
};

// Throw Unsupported unless an attribute has the one value that is supported.
void only(const char* what, const std::string& value, const std::string& supported);
void only(const char* what, int64_t value, int64_t supported);
void only(const char* what, float value, float supported);

// A Part is a parameter or buffer of a node that is made, and the constant that it is.
struct Part {
  std::string name;  // "weight"
  Constant of;
};
std::vector<Part> weight_and_bias(Constant weight, Constant bias);  // nullptr for none

class Translation {
 public:
  // Every tensor has so many samples while translating. It is a prime, so no other extent is equal by chance.
  static constexpr int64_t samples = 251;

  Translation(std::string model, Constants& constants) : graph(std::move(model)), constants(constants) {}

  // These say what the node at hand is and has.
  const Node& node() const { return *node_; }
  Value input(size_t i = 0) const;                    // computed, and nothing is pending of it
  Value padded_input() const { return computed(0); }  // the first, of which a padding may be pending
  Constant constant(size_t i);                        // nullptr where it is computed or left out
  Constant weight(size_t i, const char* what);        // Unsupported unless it is a float constant
  bool has(size_t i) const { return !node_->input(i).empty(); }
  // Returns the integers of an attribute, or of a constant input, as later opsets have it.
  std::vector<int64_t> integers(const char* attribute, size_t input, std::vector<int64_t> otherwise = {});

  std::vector<int64_t> shape(const Value&) const;
  int rank(const Value& x) const { return int(x.order.size()); }
  int axis(const Value&, int64_t axis) const;  // that may count from the end

  // These make nodes of ours, and say what the node at hand gives.
  Value emit(std::shared_ptr<const Op>, const std::vector<Value>&, std::vector<int> order = {},
             const std::vector<Part>& parts = {});
  // Makes a node of an operator that works on every number by itself.
  Value same(std::shared_ptr<const Op>, const Value&);
  Value plain(const Value&);                    // its axes stored in their order
  Value image(const Value&, const char* what);  // plain, of rank 4
  Value reshape(const Value&, const std::vector<int64_t>& of_sample);
  // Calls of(x as N x C x H x W with C for the axis), and brings the image that it returns back.
  Value over_channels(const Value&, int axis, const std::function<Value(const Value&)>& of);
  Value over_channels(const std::vector<Value>&, int axis,
                      const std::function<Value(const std::vector<Value>&)>& of);
  void give(size_t output, Value);
  void give(size_t output, NamedTensor);

  void begin(const Node&);  // the node that is translated next
  void enter(const std::string& name, Value);
  const Value* find(const std::string& name) const;
  std::string unique(std::string name);  // of a node

  Graph graph;
  Weights weights;
  Constants& constants;
  int64_t opset = 0, file_samples = -1;  // −1: the file leaves it open

 private:
  Value computed(size_t input) const;
  std::string name_of(const std::vector<Part>&);
  void take_whole(const Constant&);

  const Node* node_ = nullptr;
  std::unordered_map<std::string, Value> values_;
  std::unordered_set<std::string> names_, whole_;
  std::unordered_map<std::string, int> taken_;  // how often a name was wanted again
};

// Translates a node. Throws Unsupported.
void translate_node(Translation&);
std::vector<std::string> supported_operators();

std::vector<int> natural(int rank);

}  // namespace antichain::onnx
