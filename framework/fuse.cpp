#include "framework/fuse.h"

#include <algorithm>

#include "framework/backend.h"
#include "framework/error.h"

namespace antichain {
namespace {

// A Chain lists the nodes that become one, and what the result computes from which nodes of the old graph.
struct Chain {
  std::vector<NodeId> members;
  std::shared_ptr<const Op> op;
  std::vector<NodeId> inputs;
};

class Fuser {
 public:
  Fuser(const Graph& from, const Backend& backend)
      : from_(from),
        backend_(backend),
        to_(from.model(), Precision::float32, from.state()),
        taken_(size_t(from.size())) {}

  Graph run() && {
    std::vector<Chain> chain_ending_at(size_t(from_.size()));
    for (NodeId id = 0; id < from_.size(); ++id) {
      if (taken_[size_t(id)]) continue;
      Chain chain{{id}, from_[id].op, from_[id].inputs};
      while (extend(chain)) taken_[size_t(chain.members.back())] = true;
      chain_ending_at[size_t(chain.members.back())] = std::move(chain);
    }
    new_id_.resize(size_t(from_.size()), -1);
    for (NodeId id = 0; id < from_.size(); ++id)
      if (const Chain& chain = chain_ending_at[size_t(id)]; !chain.members.empty())
        new_id_[size_t(id)] = add(chain);
    return std::move(to_);
  }

 private:
  bool extend(Chain& chain) const {
    const NodeId last = chain.members.back();
    if (from_.consumers(last).size() != 1) return false;
    const NodeId next = from_.consumers(last)[0];
    if (from_[last].signature.y.shape != from_[next].signature.y.shape) return false;
    std::vector<NodeId> others = from_[next].inputs;
    const auto input = int(std::ranges::find(others, last) - others.begin());
    if (taken_[size_t(next)] || std::erase(others, last) != 1) return false;
    std::shared_ptr<const Op> fused = chain.op->then(*from_[next].op, input);
    if (!fused) return false;
    const KernelEntry& entry = backend_.entry(fused->type());
    if (!entry.fuses || !entry.fuses(*fused)) return false;
    chain.members.push_back(next);
    chain.op = std::move(fused);
    chain.inputs.insert(chain.inputs.end(), others.begin(), others.end());
    return true;
  }

  NodeId add(const Chain& chain) {
    const NodeId named = chain.members.front();
    std::vector<std::string> absorbed;
    for (NodeId id : chain.members) {
      ANTICHAIN_CHECK(id == named || from_[id].signature.params.empty(),
                      "parameters are named by their node");
      if (id != named) absorbed.push_back(from_[id].name);
      absorbed.insert(absorbed.end(), from_[id].absorbed.begin(), from_[id].absorbed.end());
    }
    std::vector<NodeId> inputs;
    for (NodeId id : chain.inputs) inputs.push_back(new_id_[size_t(id)]);
    return to_.add(from_[named].name, chain.op, std::move(inputs), from_[named].lowering,
                   std::move(absorbed));
  }

  const Graph& from_;
  const Backend& backend_;
  Graph to_;
  std::vector<bool> taken_;     // by a chain that began earlier
  std::vector<NodeId> new_id_;  // of a chain's last node
};

}  // namespace

// A second pass lets a node join a chain that has swallowed its consumer.
Graph fuse(const Graph& graph, const Backend& backend) {
  Graph fused = Fuser(graph, backend).run();
  return fused.size() == graph.size() ? fused : fuse(fused, backend);
}

}  // namespace antichain
