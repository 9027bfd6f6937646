// Lowers a graph: every node gets the layouts and the precision its engine works in. A "reorder" node appears
// wherever a producer's and a consumer's layouts differ, once per tensor and form. Lowering happens before
// profiling, so that reorders are priced, planned and cut like any other node.

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "framework/backend.h"
#include "framework/error.h"
#include "framework/fuse.h"
#include "framework/graph.h"
#include "framework/reorder.h"

namespace antichain {
namespace {

class Lowerer {
 public:
  Lowerer(const Graph& from, const Backend& backend, Precision precision)
      : from_(from), backend_(backend), precision_(precision), to_(from.model(), precision, from.state()) {}

  Graph run() && {
    for (const Node& node : from_) new_id_.push_back(add(node));
    return std::move(to_);
  }

 private:
  NodeId add(const Node& node) {
    if (node.role() == Role::input) return to_.add(node.name, node.op, {});
    std::vector<NodeId> inputs;
    std::vector<Shape> shapes;
    std::vector<Layout> offered;
    for (NodeId input : node.inputs) {
      inputs.push_back(new_id_[input]);
      shapes.push_back(from_.shape(input));
      offered.push_back(to_[inputs.back()].lowering.y);
    }
    Lowering lowering = backend_.entry(node.op->type()).lower(*node.op, shapes, offered, precision_);
    ANTICHAIN_CHECK(
        lowering.x.size() == inputs.size() && lowering.params.size() == node.signature.params.size(),
        fmt::format("the lowering of '{}' names a layout per input and parameter", node.name));
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Wants wants = node.op->wants(i, inputs.size());
      const Node& from = to_[inputs[i]];
      if (from.output().dtype == DType::i32 && wants == Wants::numbers &&
          storage(lowering.precision) != DType::f32)
        throw Error(
            fmt::format("node '{}' computes with the whole numbers of '{}', which {} rounds beyond 256",
                        node.name, from.name, name_of(lowering.precision)),
            "give --precision float32", ExitCode::usage);
      inputs[i] = in_form(inputs[i], lowering.x[i], lowering.precision, wants);
    }
    return to_.add(node.name, node.op, std::move(inputs), std::move(lowering), node.absorbed);
  }

  NodeId in_form(NodeId id, Layout layout, Precision precision, Wants wants) {
    const TensorSpec have = to_[id].output();
    const bool stays = have.dtype == DType::i32 && wants != Wants::numbers;
    const DType dtype = stays ? have.dtype : storage(precision);
    if (have.layout == layout && have.dtype == dtype) return id;
    const auto [it, is_new] = reordered_.try_emplace({id, layout, dtype}, to_.size());
    if (is_new) {
      auto op = std::make_shared<Reorder>(layout, have.dtype, dtype);
      Lowering lowering =
          backend_.entry(op->type()).lower(*op, {&have.shape, 1}, {&have.layout, 1}, precision);
      std::string name = to_[id].name;
      if (have.layout != layout) name += fmt::format(".{}", name_of(layout));
      if (have.dtype != dtype) name += fmt::format(".{}", name_of(dtype));
      to_.add(std::move(name), op, {id}, std::move(lowering));
    }
    return it->second;
  }

  const Graph& from_;
  const Backend& backend_;
  const Precision precision_;
  Graph to_;
  std::vector<NodeId> new_id_;
  std::map<std::tuple<NodeId, Layout, DType>, NodeId> reordered_;
};

}  // namespace

Graph lower(const Graph& graph, const Backend& backend, Precision precision) {
  backend.require(precision);
  const Graph fused = fuse(graph, backend);
  return Lowerer(fused, backend, precision).run();
}

}  // namespace antichain
