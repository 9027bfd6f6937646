#include "models/onnx/messages.h"

#include <algorithm>

namespace antichain::onnx {

const Attribute* Node::find(std::string_view wanted) const {
  const auto found = std::ranges::find(attributes, wanted, &Attribute::name);
  return found == attributes.end() ? nullptr : &*found;
}
int64_t Node::integer(std::string_view wanted, int64_t otherwise) const {
  const Attribute* a = find(wanted);
  return a ? a->integer : otherwise;
}
float Node::real(std::string_view wanted, float otherwise) const {
  const Attribute* a = find(wanted);
  return a ? a->real : otherwise;
}
std::string Node::text(std::string_view wanted, const std::string& otherwise) const {
  const Attribute* a = find(wanted);
  return a ? a->text : otherwise;
}
std::vector<int64_t> Node::integers(std::string_view wanted, std::vector<int64_t> otherwise) const {
  const Attribute* a = find(wanted);
  return a ? a->integers : otherwise;
}
const std::string& Node::input(size_t i) const {
  static const std::string none;
  return i < inputs.size() ? inputs[i] : none;
}

Node& Node::set(std::string called, int64_t value) {
  attributes.push_back({.name = std::move(called), .type = type_integer, .integer = value});
  return *this;
}
Node& Node::set(std::string called, float value) {
  attributes.push_back({.name = std::move(called), .type = type_real, .real = value});
  return *this;
}
Node& Node::set(std::string called, std::string_view value) {
  attributes.push_back({.name = std::move(called), .type = type_text, .text = std::string(value)});
  return *this;
}
Node& Node::set(std::string called, std::vector<int64_t> value) {
  attributes.push_back({.name = std::move(called), .type = type_integers, .integers = std::move(value)});
  return *this;
}

}  // namespace antichain::onnx
