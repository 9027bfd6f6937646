#include "pipeline/train/move_state.h"

#include <fmt/format.h>

#include <vector>

#include "framework/error.h"

namespace antichain {
namespace {

// Returns the rank of each node's stage; −1 for input nodes.
std::vector<int> rank_of_nodes(const Plan& plan, int nodes) {
  std::vector<int> rank(size_t(nodes), -1);
  for (const PlanStage& stage : plan.stages)
    for (const int node : stage.nodes) rank[size_t(node)] = stage.ranks.front();
  return rank;
}

// Returns the tensors of a node's state, in the same order on every rank. One that the rank has in another
// node, too, is received aside, because that node's is the same.
std::vector<Tensor> state_of(const NodeState& state, bool receives) {
  std::vector<Tensor> all;
  const auto add = [&](const Tensor& t, bool aside) { all.push_back(aside ? Tensor::host(t.spec()) : t); };
  for (size_t i = 0; i < state.params.size(); ++i) {
    add(state.params[i], receives && state.again[i]);
    for (const Tensor& slot : state.slots[i]) add(slot, receives && state.again[i]);
  }
  for (const Tensor& buffer : state.buffers) add(buffer, false);
  return all;
}

}  // namespace

std::string why_not_moved(const Plan& from, const Plan& to) {
  for (const Plan* plan : {&from, &to})
    for (size_t s = 0; s < plan->stages.size(); ++s)
      if (plan->stages[s].ranks.size() > 1)
        return fmt::format("stage {} has {} replicas", s, plan->stages[s].ranks.size());
  if (from.ranks() != to.ranks())
    return fmt::format("one plan is for {} ranks, the other for {}", from.ranks(), to.ranks());
  return "";
}

Moved count_moved(const Graph& graph, const Optimiser& optimiser, const Plan& from, const Plan& to) {
  const std::vector<int> before = rank_of_nodes(from, graph.size()), after = rank_of_nodes(to, graph.size());
  Moved moved;
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (before[size_t(id)] == after[size_t(id)]) continue;
    ++moved.nodes;
    const Signature& has = graph[id].signature;
    for (size_t i = 0; i < has.params.size(); ++i)
      moved.bytes += graph[id].param(i).bytes() * int64_t(1 + slots_of(optimiser, has.params[i]).size());
    for (const ParamSpec& buffer : has.buffers) moved.bytes += TensorSpec{buffer.shape, buffer.dtype}.bytes();
  }
  return moved;
}

void move_state(RankModel& model, const Plan& from, const Plan& to, Transport& transport) {
  ANTICHAIN_CHECK(why_not_moved(from, to).empty() && model.context().backend().host_memory(),
                  "state moves between ranks in host memory without replicas");
  const int nodes = model.graph().size(), own = transport.rank();
  const std::vector<int> before = rank_of_nodes(from, nodes), after = rank_of_nodes(to, nodes);
  transport.name_messages([](MessageKey, int, int) { return "state of a node that changes its rank"; });
  transport.job().activity().doing("moving to another plan");
  const auto for_each_moved = [&](const std::vector<int>& owners, bool receives, const auto& visit) {
    for (NodeId id = 0; id < nodes; ++id) {
      if (before[size_t(id)] == after[size_t(id)] || owners[size_t(id)] != own) continue;
      const std::vector<Tensor> all = state_of(model[id], receives);
      for (const Tensor& tensor : all) visit(id, tensor);
    }
  };
  const MessageKey key;  // messages from one rank to another come in the order of sending
  for_each_moved(before, false,
                 [&](NodeId id, const Tensor& t) { transport.send(key, after[size_t(id)], t); });
  model.own(nodes_of_rank(to, own));
  std::vector<Transport::Ticket> tickets;
  for_each_moved(after, true, [&](NodeId id, const Tensor& t) {
    tickets.push_back(transport.recv(key, before[size_t(id)], t));
  });
  for (const Transport::Ticket ticket : tickets) transport.wait(ticket);
  transport.flush();
  model.prepare();
}

}  // namespace antichain
