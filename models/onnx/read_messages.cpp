// Reads the messages of an ONNX file by the numbers that onnx.proto gives their fields.
#include <fmt/format.h>

#include <charconv>

#include "framework/error.h"
#include "models/onnx/messages.h"
#include "models/onnx/wire.h"

namespace antichain::onnx {
namespace {

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
      case 20:
        a.type = f.integer();
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

}  // namespace

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

}  // namespace antichain::onnx
