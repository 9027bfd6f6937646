#include "models/onnx/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <type_traits>

#include "framework/error.h"
#include "models/graph_file.h"
#include "models/onnx/wire.h"

namespace antichain::onnx {
namespace {

constexpr size_t most_dims = 16;

// Calls read(field) for every field of a message.
template <class Read>
void each_field(std::string_view bytes, WireBudget& budget, Read read) {
  WireReader reader(bytes, budget);
  for (WireField field; reader.next(field);) read(field);
}

[[noreturn]] void refuse_file(const WireBudget& budget, const std::string& why, const std::string& hint) {
  throw Error(fmt::format("{}: {}", budget.origin, why), hint);
}

int64_t whole_number(const std::string& text, const WireBudget& budget) {
  int64_t value = -1;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size() || value < 0)
    refuse_file(budget, fmt::format("external data lie at '{}'", text.substr(0, 40)),
                "a number of bytes is expected there");
  return value;
}

void read_external(const WireField& entry, WireBudget& budget, Tensor& tensor) {
  std::string key, value;
  each_field(entry.message(), budget, [&](const WireField& f) {
    if (f.number == 1) key = f.text();
    if (f.number == 2) value = f.text();
  });
  if (key == "location") tensor.location = value;
  if (key == "offset") tensor.offset = whole_number(value, budget);
  if (key == "length") tensor.length = whole_number(value, budget);
}

Tensor read_tensor(std::string_view bytes, WireBudget& budget) {
  Tensor t;
  each_field(bytes, budget, [&](const WireField& f) {
    switch (f.number) {
      case 1:
        f.append_to(t.dims);
        break;
      case 2:
        t.type = f.integer();
        break;
      case 4:
        f.append_to(t.floats);
        break;
      case 5:
      case 7:
        f.append_to(t.integers);
        break;
      case 8:
        t.name = f.text();
        break;
      case 9:
        t.raw = f.message();
        break;
      case 10:
        f.append_to(t.doubles);
        break;
      case 13:
        read_external(f, budget, t);
        break;
      case 14:
        t.external = f.integer() == 1;
        break;
      default:
        break;
    }
  });
  return t;
}

Attribute read_attribute(std::string_view bytes, WireBudget& budget) {
  Attribute a;
  each_field(bytes, budget, [&](const WireField& f) {
    switch (f.number) {
      case 1:
        a.name = f.text();
        break;
      case 2:
        a.real = f.real();
        break;
      case 3:
        a.integer = f.integer();
        break;
      case 4:
        a.text = f.text();
        break;
      case 5:
        a.tensor = read_tensor(f.message(), budget), a.has_tensor = true;
        break;
      case 6:
      case 11:
        a.has_graph = true;
        break;
      case 7:
        f.append_to(a.reals);
        break;
      case 8:
        f.append_to(a.integers);
        break;
      default:
        break;
    }
  });
  return a;
}

Node read_node(std::string_view bytes, WireBudget& budget) {
  Node node;
  each_field(bytes, budget, [&](const WireField& f) {
    switch (f.number) {
      case 1:
        node.inputs.push_back(f.text());
        break;
      case 2:
        node.outputs.push_back(f.text());
        break;
      case 3:
        node.name = f.text();
        break;
      case 4:
        node.op = f.text();
        break;
      case 5:
        node.attributes.push_back(read_attribute(f.message(), budget));
        break;
      case 7:
        node.domain = f.text();
        break;
      default:
        break;
    }
  });
  return node;
}

void read_dim(std::string_view bytes, WireBudget& budget, ValueInfo& info) {
  info.dims.push_back(-1);
  info.params.emplace_back();
  each_field(bytes, budget, [&](const WireField& f) {
    if (f.number == 1) info.dims.back() = f.integer();
    if (f.number == 2) info.params.back() = f.text();
  });
}

ValueInfo read_value_info(std::string_view bytes, WireBudget& budget) {
  ValueInfo info;
  info.type = 0;
  each_field(bytes, budget, [&](const WireField& f) {
    if (f.number == 1) info.name = f.text();
    if (f.number != 2) return;
    each_field(f.message(), budget, [&](const WireField& type) {
      if (type.number != 1) return;  // sequences and maps are no tensors
      each_field(type.message(), budget, [&](const WireField& tensor) {
        if (tensor.number == 1) info.type = tensor.integer();
        if (tensor.number != 2) return;
        each_field(tensor.message(), budget, [&](const WireField& dim) {
          if (dim.number == 1) read_dim(dim.message(), budget, info);
        });
      });
    });
  });
  return info;
}

FileGraph read_onnx_graph(std::string_view bytes, WireBudget& budget) {
  FileGraph graph;
  each_field(bytes, budget, [&](const WireField& f) {
    switch (f.number) {
      case 1:
        graph.nodes.push_back(read_node(f.message(), budget));
        break;
      case 2:
        graph.name = f.text();
        break;
      case 5:
        graph.initializers.push_back(read_tensor(f.message(), budget));
        break;
      case 11:
        graph.inputs.push_back(read_value_info(f.message(), budget));
        break;
      case 12:
        graph.outputs.push_back(read_value_info(f.message(), budget));
        break;
      case 15:
        refuse_file(budget, "it has sparse initializers", "write them as dense ones");
      default:
        break;
    }
  });
  return graph;
}

// Writing

WireWriter written_tensor(const Tensor& t) {
  WireWriter w;
  for (const int64_t dim : t.dims) w.integer(1, dim);
  w.integer(2, t.type);
  w.bytes(8, t.name);
  w.bytes(9, t.raw);
  return w;
}

WireWriter written_attribute(const Attribute& a, int64_t type) {
  WireWriter w;
  w.bytes(1, a.name);
  switch (type) {
    case 1:
      w.real(2, a.real);
      break;
    case 2:
      w.integer(3, a.integer);
      break;
    case 3:
      w.bytes(4, a.text);
      break;
    default:
      for (const int64_t i : a.integers) w.integer(8, i);
  }
  w.integer(20, type);
  return w;
}

WireWriter written_node(const Node& node) {
  WireWriter w;
  for (const std::string& input : node.inputs) w.bytes(1, input);
  for (const std::string& output : node.outputs) w.bytes(2, output);
  w.bytes(3, node.name);
  w.bytes(4, node.op);
  if (!node.domain.empty()) w.bytes(7, node.domain);
  for (const Attribute& a : node.attributes)
    w.message(5, written_attribute(a, !a.integers.empty() ? 7 : !a.text.empty() ? 3 : a.real != 0 ? 1 : 2));
  return w;
}

WireWriter written_value_info(const ValueInfo& info) {
  WireWriter shape;
  for (size_t i = 0; i < info.dims.size(); ++i) {
    WireWriter dim;
    if (info.dims[i] >= 0)
      dim.integer(1, info.dims[i]);
    else
      dim.bytes(2, info.params[i]);
    shape.message(1, dim);
  }
  WireWriter tensor, type, w;
  tensor.integer(1, info.type);
  tensor.message(2, shape);
  type.message(1, tensor);
  w.bytes(1, info.name);
  w.message(2, type);
  return w;
}

WireWriter written_graph(const FileGraph& graph) {
  WireWriter w;
  for (const Node& node : graph.nodes) w.message(1, written_node(node));
  w.bytes(2, graph.name);
  for (const Tensor& t : graph.initializers) w.message(5, written_tensor(t));
  for (const ValueInfo& info : graph.inputs) w.message(11, written_value_info(info));
  for (const ValueInfo& info : graph.outputs) w.message(12, written_value_info(info));
  return w;
}

// Numbers of tensors

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
  attributes.push_back({.name = std::move(called), .integer = value});
  return *this;
}
Node& Node::set(std::string called, float value) {
  attributes.push_back({.name = std::move(called), .real = value});
  return *this;
}
Node& Node::set(std::string called, std::string_view value) {
  attributes.push_back({.name = std::move(called), .text = std::string(value)});
  return *this;
}
Node& Node::set(std::string called, std::vector<int64_t> value) {
  attributes.push_back({.name = std::move(called), .integers = std::move(value)});
  return *this;
}

Model parse(std::string_view bytes, const std::string& origin) {
  WireBudget budget{origin};
  Model model;
  bool has_graph = false;
  each_field(bytes, budget, [&](const WireField& f) {
    switch (f.number) {
      case 1:
        model.ir_version = f.integer();
        break;
      case 2:
        model.producer = f.text();
        break;
      case 3:
        model.producer_version = f.text();
        break;
      case 7:
        model.graph = read_onnx_graph(f.message(), budget), has_graph = true;
        break;
      case 8: {
        Opset& opset = model.opsets.emplace_back();
        each_field(f.message(), budget, [&](const WireField& of) {
          if (of.number == 1) opset.domain = of.text();
          if (of.number == 2) opset.version = of.integer();
        });
        break;
      }
      default:
        break;
    }
  });
  if (!has_graph || model.opsets.empty())
    throw Error(fmt::format("{} is no ONNX file: it has no {}", origin, has_graph ? "opset" : "graph"),
                "the file is truncated or damaged");
  return model;
}

std::string serialise(const Model& model) {
  WireWriter w;
  w.integer(1, model.ir_version);
  w.bytes(2, model.producer);
  w.bytes(3, model.producer_version);
  w.message(7, written_graph(model.graph));
  for (const Opset& opset : model.opsets) {
    WireWriter of;
    of.bytes(1, opset.domain);
    of.integer(2, opset.version);
    w.message(8, of);
  }
  return w.written();
}

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
