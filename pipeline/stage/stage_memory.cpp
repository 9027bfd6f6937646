#include "pipeline/stage/stage_memory.h"

#include <algorithm>
#include <set>
#include <utility>

#include "framework/error.h"
#include "pipeline/schedule/schedule_passes.h"
#include "pipeline/stage/parts.h"

namespace antichain {

// Two passes over the same description: first every tensor asks for a ring of its own or for room in the
// arena, then the arena is laid out and the rings that live in it are made.
class StageMemory::Builder {
 public:
  // Without a backend, bytes are counted and tensors stay empty.
  Builder(StageMemory& memory, const Graph& graph, const std::vector<NodeId>& nodes, const Backend* backend,
          const Profile& network, const Plan& plan, const Schedule& schedule, int rank, Mode mode)
      : memory_(memory),
        graph_(graph),
        nodes_(nodes),
        backend_(backend),
        network_(network),
        stage_of_(plan.stage_of(graph_.size())),
        actions_(schedule.ranks[rank]),
        seat_(seat_of(plan, rank, schedule.microbatches)),
        slots_(slots(schedule)[rank].at(seat_.stage)),
        train_(mode == Mode::train) {
    for (size_t i = 0; i < nodes.size(); ++i) position_[nodes[i]] = int(i);
    end_ = 2 * int(position_.size()) + 1;
    for (const Action& a : actions_) {
      split_ = split_ || a.verb == Verb::backward_weight;
      if (a.verb == Verb::send && a.message.flow == Flow::activation) sent_.insert(a.message.tensor);
      if (a.verb == Verb::recv && a.message.flow == Flow::activation) received_.insert(a.message.tensor);
    }
  }

  void build() {
    outputs();
    if (train_) {
      stashes();
      statistics();
      gradients();
      terms();
    }
    lay_out_arena();
  }

 private:
  // Kernel calls in order: the forward of every node, then the backward of every node, last first.
  int forward_at(NodeId id) const { return position_.at(id); }
  int backward_at(NodeId id) const { return end_ - 1 - position_.at(id); }
  bool local(NodeId id) const { return position_.contains(id); }

  Ring own_ring(const TensorSpec& spec, int size) {
    std::vector<Tensor> buffers;
    for (int i = 0; i < std::clamp(size, 1, seat_.count()); ++i)
      buffers.push_back(backend_ ? backend_->tensor(spec) : Tensor(spec, nullptr));
    memory_.bytes_ += spec.bytes() * int64_t(buffers.size());
    return Ring(std::move(buffers), seat_.replicas);
  }

  void in_arena(Ring& ring, const TensorSpec& spec, int first, int last) {
    requests_.push_back({&ring, spec});
    lifetimes_.push_back({spec.bytes(), first, last});
  }

  bool kept(NodeId id) const {
    if (!train_) return false;
    auto rereads = [&](NodeId c) { return local(c) && graph_[c].keeps(id); };
    return (local(id) && graph_[id].lowering.keeps_y) || std::ranges::any_of(graph_.consumers(id), rereads);
  }

  void outputs() {
    std::set<NodeId> used(nodes_.begin(), nodes_.end());
    for (NodeId id : nodes_) used.insert(graph_[id].inputs.begin(), graph_[id].inputs.end());
    for (NodeId id : used) {
      const TensorSpec spec = graph_[id].output();
      Ring& ring = memory_.output[id];
      if (received_.contains(id)) {
        ring = own_ring(spec, slots_.receive_ring(Flow::activation));
      } else if (!local(id)) {
        // A loaded input. To a device, the next micro-batch's is copied meanwhile.
        ring = own_ring(spec, slots_.microbatches + int(backend_ && !backend_->host_memory()));
      } else if (kept(id) || sent_.contains(id)) {
        ring = own_ring(spec, std::max(kept(id) ? slots_.microbatches : 0,
                                       sent_.contains(id) ? slots_.sent_activations : 0));
      } else {
        in_arena(ring, spec, forward_at(id), last_use(id));
      }
    }
  }

  // The forward of the last local consumer; the loss is read after the whole forward.
  int last_use(NodeId id) const {
    if (graph_[id].role() == Role::loss) return int(position_.size());
    int last = forward_at(id);
    for (NodeId c : graph_.consumers(id))
      if (local(c)) last = std::max(last, forward_at(c));
    return last;
  }

  void stashes() {
    for (NodeId id : nodes_) {
      for (const TensorSpec& spec : graph_[id].lowering.stash)
        memory_.stash[id].push_back(own_ring(spec, slots_.microbatches));
    }
  }

  // Of every micro-batch of the step, until the update: one block each, which travels as one message.
  void statistics() {
    int64_t bytes = 0;
    for (NodeId id : nodes_)
      for (const TensorSpec& spec : graph_[id].signature.statistics) bytes += part_room(spec.bytes());
    if (bytes == 0) return;
    std::vector<Tensor> blocks;
    for (int m = 0; m < seat_.microbatches; ++m)
      blocks.push_back(backend_ ? backend_->tensor({{bytes}, DType::u8}) : Tensor());
    memory_.bytes_ += seat_.microbatches * bytes;
    int64_t begin = 0;
    for (NodeId id : nodes_)
      for (const TensorSpec& spec : graph_[id].signature.statistics) {
        std::vector<Tensor> of_step;
        for (const Tensor& block : blocks) of_step.push_back(part_of(block, begin, spec));
        memory_.statistics[id].emplace_back(std::move(of_step));
        begin += part_room(spec.bytes());
      }
    if (seat_.replicas > 1) memory_.all_statistics = std::move(blocks);
  }

  // Received when all backwards are done.
  void terms() {
    if (seat_.replicas == 1) return;
    const int64_t bytes = equal_part(gradient_bytes(graph_, nodes_), seat_.replica, seat_.replicas).bytes;
    if (bytes == 0) return;
    memory_.terms.resize(size_t(seat_.replicas - 1));
    for (Ring& ring : memory_.terms) in_arena(ring, {{bytes / int64_t(sizeof(float))}}, end_, end_);
  }

  void gradients() {
    for (const Action& a : actions_) {
      if (a.message.flow != Flow::gradient) continue;
      const TensorSpec spec = graph_[std::max(a.message.tensor, 0)].output();
      if (a.verb == Verb::send && !memory_.sent.contains(a.message))
        memory_.sent[a.message] = own_ring(spec, slots_.sent_gradients);
      if (a.verb == Verb::recv && !memory_.received.contains(a.message))
        memory_.received[a.message] = own_ring(spec, slots_.receive_ring(Flow::gradient));
    }
    for (NodeId id : nodes_)
      if (graph_.needs_gradient(id)) output_gradient(id);
    for (NodeId id : nodes_) memory_.contributions[id].resize(graph_[id].inputs.size());
    std::set<NodeId> tensors;
    for (NodeId id : nodes_) tensors.insert(graph_[id].inputs.begin(), graph_[id].inputs.end());
    for (NodeId tensor : tensors)
      if (graph_.needs_gradient(tensor)) fold(tensor);
  }

  void output_gradient(NodeId id) {
    const auto terms = gradient_fold(network_, stage_of_, id);
    if (terms.empty())
      throw Error("node '" + graph_[id].name + "' of model '" + graph_.model() +
                      "' has parameters before it but no loss after it",
                  "remove it or connect it to a loss");
    OutputGradient& out = memory_.gradient[id];
    out.starts = true;
    int first = backward_at(id);
    for (const FoldTerm& term : terms) {
      if (term.stage == stage_of_[id]) {
        out.starts = false;
        out.received_after.clear();
        first = std::min(first, backward_at(term.message.consumer));
      } else {
        out.received_after.push_back(term.message);
      }
    }
    const bool outlives = split_ && !graph_[id].signature.params.empty();  // the weight half comes later
    if (terms.size() == 1 && out.starts && !outlives) return;              // dy is the received tensor itself
    if (outlives)
      out.sum = own_ring(graph_[id].output(), slots_.held_gradients + 1);
    else
      in_arena(out.sum, graph_[id].output(), first, backward_at(id));
  }

  // Walks the fold of one tensor and tells each local consumer where its contribution goes.
  void fold(NodeId tensor) {
    const auto terms = gradient_fold(network_, stage_of_, tensor);
    std::vector<Message> waiting;
    bool starts = true;
    for (const FoldTerm& term : terms) {
      if (term.stage != here()) {
        waiting.push_back(term.message);
        continue;
      }
      if (local(tensor)) {
        contribute(term.message.consumer, tensor, memory_.gradient[tensor].sum, std::exchange(waiting, {}),
                   starts);
        starts = false;
      } else {  // one message per term; only the first term can be a run of several consumers
        starts = true;
        const auto& consumers = graph_.consumers(tensor);
        const NodeId highest = &term == &terms.front() ? consumers.back() : term.message.consumer;
        for (auto c = consumers.rbegin(); c != consumers.rend(); ++c)
          if (*c <= highest && *c >= term.message.consumer)
            contribute(*c, tensor, memory_.sent.at(term.message), {}, std::exchange(starts, false));
      }
    }
  }

  // A consumer that uses the tensor twice contributes twice, in input order.
  void contribute(NodeId consumer, NodeId tensor, Ring& sum, std::vector<Message> received_before,
                  bool starts) {
    const Node& node = graph_[consumer];
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] != tensor) continue;
      Contribution& c = memory_.contributions[consumer][i];
      c.wanted = true;
      c.starts = std::exchange(starts, false);
      c.adds = node.lowering.adds_dx && std::ranges::count(node.inputs, tensor) == 1;
      c.received_before = std::exchange(received_before, {});
      sums_.push_back({&c.sum, &sum});
      if (!c.written_directly())
        in_arena(c.term, graph_[tensor].output(), backward_at(consumer), backward_at(consumer));
    }
  }

  void lay_out_arena() {
    const ArenaLayout layout = lay_out(lifetimes_);
    memory_.bytes_ += layout.bytes;
    if (!backend_) return;
    memory_.arena_ = backend_->tensor({{std::max<int64_t>(layout.bytes, 64)}, DType::u8});
    for (size_t i = 0; i < requests_.size(); ++i) {
      const auto& [ring, spec] = requests_[i];
      *ring = Ring({part_of(memory_.arena_, layout.offsets[i], spec)});
    }
    for (const auto& [copy, original] : sums_) *copy = *original;
  }

  int here() const { return stage_of_[nodes_.front()]; }

  StageMemory& memory_;
  const Graph& graph_;
  const std::vector<NodeId>& nodes_;
  const Backend* backend_;
  const Profile& network_;
  const std::vector<int> stage_of_;
  const std::vector<Action>& actions_;
  const Seat seat_;
  const Slots slots_;
  const bool train_;
  bool split_ = false;
  int end_ = 0;
  std::map<NodeId, int> position_;
  std::set<NodeId> sent_, received_;
  std::vector<std::pair<Ring*, TensorSpec>> requests_;
  std::vector<Lifetime> lifetimes_;
  std::vector<std::pair<Ring*, Ring*>> sums_;
};

StageMemory::StageMemory(Stage& stage, const Profile& network, const Plan& plan, const Schedule& schedule,
                         int rank, Mode mode) {
  Builder(*this, stage.graph(), stage.nodes(), &stage.context().backend(), network, plan, schedule, rank,
          mode)
      .build();
}

int64_t StageMemory::bytes_needed(const Graph& graph, const std::vector<NodeId>& nodes,
                                  const Profile& network, const Plan& plan, const Schedule& schedule,
                                  int rank, Mode mode) {
  StageMemory memory;
  Builder(memory, graph, nodes, nullptr, network, plan, schedule, rank, mode).build();
  return memory.bytes();
}

}  // namespace antichain
