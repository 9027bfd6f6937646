// Lowering: every node gets the layouts its engine works in, and a "reorder" node appears wherever a producer
// and a consumer disagree, once per tensor and layout. It happens before profiling, so that reorders are
// priced, planned and cut like any other node.

#include <fmt/format.h>

#include <map>

#include "framework/backend.h"
#include "framework/error.h"
#include "framework/fuse.h"
#include "framework/graph.h"
#include "framework/reorder.h"

namespace antichain {
namespace {

class Lowerer {
 public:
  Lowerer(const Graph& from, const Backend& backend) : from_(from), backend_(backend), to_(from.model()) {}

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
    Lowering lowering = backend_.entry(node.op->type()).lower(*node.op, shapes, offered);
    ANTICHAIN_CHECK(
        lowering.x.size() == inputs.size() && lowering.params.size() == node.signature.params.size(),
        fmt::format("the lowering of '{}' names a layout per input and parameter", node.name));
    for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = in_layout(inputs[i], lowering.x[i]);
    return to_.add(node.name, node.op, std::move(inputs), std::move(lowering), node.absorbed);
  }

  NodeId in_layout(NodeId id, Layout wanted) {
    const Layout have = to_[id].lowering.y;
    if (have == wanted) return id;
    const auto [it, is_new] = reordered_.try_emplace({id, wanted}, to_.size());
    if (is_new) {
      auto op = std::make_shared<Reorder>(wanted);
      const Shape shape = to_.shape(id);
      Lowering lowering = backend_.entry(op->type()).lower(*op, {&shape, 1}, {&have, 1});
      to_.add(fmt::format("{}.{}", to_[id].name, name_of(wanted)), op, {id}, std::move(lowering));
    }
    return it->second;
  }

  const Graph& from_;
  const Backend& backend_;
  Graph to_;
  std::vector<NodeId> new_id_;
  std::map<std::pair<NodeId, Layout>, NodeId> reordered_;
};

}  // namespace

Graph lower(const Graph& graph, const Backend& backend) {
  const Graph fused = fuse(graph, backend);
  return Lowerer(fused, backend).run();
}

}  // namespace antichain
