#include "pipeline/stage/stage_memory.h"

#include <algorithm>
#include <list>
#include <set>
#include <utility>

#include "framework/error.h"
#include "pipeline/schedule/gradient_buckets.h"
#include "pipeline/schedule/schedule_passes.h"
#include "pipeline/stage/parts.h"

namespace antichain {

// Two passes over the same description: first every tensor asks for a ring of its own or for room in the
// arena, then the arena is laid out and the rings that live in it are made.
class RankMemory::StageBuilder {
 public:
  // Without a backend, bytes are counted and tensors stay empty. `stages` has the rank's earlier ones.
  StageBuilder(RankMemory& rank, const Graph& graph, const Backend* backend, const Profile& profile,
               const Plan& plan, const Crossing& crossing, const std::vector<Action>& of_rank,
               const Slots& slots, const Seat& seat, bool train)
      : rank_(rank),
        memory_(rank.stages_[seat.stage]),
        graph_(graph),
        nodes_(plan.stages[size_t(seat.stage)].nodes),
        backend_(backend),
        profile_(profile),
        crossing_(crossing),
        stage_of_(plan.stage_of(graph_.size())),
        of_rank_(of_rank),
        seat_(seat),
        slots_(slots),
        train_(train) {
    for (size_t i = 0; i < nodes_.size(); ++i) position_[nodes_[i]] = int(i);
    end_ = int(nodes_.size());
    for (const Action& a : of_rank_) {
      own_stages_.insert(a.stage);
      if (a.stage != here()) continue;
      if (a.verb == Verb::send && a.message.flow == Flow::activation) sent_.insert(a.message.tensor);
      if (a.verb == Verb::recv && a.message.flow == Flow::activation) received_.insert(a.message.tensor);
    }
    own_stages_.erase(here());
  }

  void ask() {
    outputs();
    if (train_) {
      stashes();
      statistics();
      gradients();
    }
    layout_ = lay_out(lifetimes_);
  }
  int64_t arena_bytes() const { return layout_.bytes; }

  void place(const Tensor& arena) {
    for (size_t i = 0; i < requests_.size(); ++i) {
      const auto& [ring, spec] = requests_[i];
      *ring = Ring({part_of(arena, layout_.offsets[i], spec)});
    }
    for (const auto& [copy, original] : sums_) *copy = *original;
  }

 private:
  class FormBuilder;

  // Times of the arena: the forward of every node, then, for each form of the backward, the backward of every
  // node, last first, and the all-reduce. The forms never live at the same time.
  int forward_at(NodeId id) const { return position_.at(id); }
  bool local(NodeId id) const { return position_.contains(id); }

  Ring own_ring(const TensorSpec& spec, int size) {
    std::vector<Tensor> buffers;
    for (int i = 0; i < std::clamp(size, 1, seat_.count()); ++i)
      buffers.push_back(backend_ ? backend_->tensor(spec) : Tensor(spec, nullptr));
    rank_.bytes_ += spec.bytes() * int64_t(buffers.size());
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

  // For how many micro-batches other stages of the rank hold this stage's output at once.
  int shared(NodeId id) const {
    std::vector<int> users;
    bool rereads = false;
    for (const NodeId c : graph_.consumers(id))
      if (own_stages_.contains(stage_of_[size_t(c)])) {
        users.push_back(stage_of_[size_t(c)]);
        rereads = rereads || (train_ && graph_[c].keeps(id));
      }
    return shared_outputs(of_rank_, here(), users, rereads);
  }

  void outputs() {
    std::set<NodeId> used(nodes_.begin(), nodes_.end());
    for (NodeId id : nodes_) used.insert(graph_[id].inputs.begin(), graph_[id].inputs.end());
    for (NodeId id : used) {
      const TensorSpec spec = graph_[id].output();
      Ring& ring = memory_.output[id];
      if (received_.contains(id)) {
        ring = own_ring(spec, slots_.receive_ring(Flow::activation));
      } else if (!local(id) && graph_[id].role() != Role::input) {
        ring = rank_.stages_.at(stage_of_[size_t(id)]).output.at(id);
      } else if (!local(id)) {
        // A loaded input. To a device, the next micro-batch's is copied meanwhile.
        ring = own_ring(spec, slots_.microbatches + int(backend_ && !backend_->host_memory()));
      } else if (const int held = shared(id); kept(id) || sent_.contains(id) || held > 0) {
        ring = own_ring(spec, std::max({kept(id) ? slots_.microbatches : 0,
                                        sent_.contains(id) ? slots_.sent_activations : 0, held}));
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

  // Every micro-batch of the step has one block until the update, which travels as one message.
  void statistics() {
    int64_t bytes = 0;
    for (NodeId id : nodes_)
      for (const TensorSpec& spec : graph_[id].signature.statistics) bytes += part_room(spec.bytes());
    if (bytes == 0) return;
    std::vector<Tensor> blocks;
    for (int m = 0; m < seat_.microbatches; ++m)
      blocks.push_back(backend_ ? backend_->tensor({{bytes}, DType::u8}) : Tensor());
    rank_.bytes_ += seat_.microbatches * bytes;
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

  void gradients() {
    for (const Action& a : of_rank_) {
      if (a.stage != here() || a.message.flow != Flow::gradient) continue;
      const TensorSpec spec = graph_[std::max(a.message.tensor, 0)].output();
      if (a.verb == Verb::send && !memory_.sent.contains(a.message))
        memory_.sent[a.message] = own_ring(spec, slots_.sent_gradients);
      if (a.verb == Verb::recv && !memory_.received.contains(a.message))
        memory_.received[a.message] = own_ring(spec, slots_.receive_ring(Flow::gradient));
    }
    for (const Route& route : crossing_.gradients) shared_gradient(route);
    add_form(memory_.whole, {Verb::backward});
    add_form(memory_.parted, {Verb::backward_input, Verb::backward_weight});
  }

  // Lays out the form of the backward that has these verbs, if the schedule has any of them here.
  void add_form(BackwardMemory&, const std::set<Verb>&);

  // Between two stages of the rank: the earlier one, which is laid out first, holds the gradient.
  void shared_gradient(const Route& route) {
    if (route.to_stage == here() && own_stages_.contains(route.from_stage))
      memory_.received[route.message] = own_ring(graph_[route.message.tensor].output(),
                                                 shared_gradients(of_rank_, here(), {route.from_stage}));
    if (route.from_stage == here() && own_stages_.contains(route.to_stage))
      memory_.sent[route.message] = rank_.stages_.at(route.to_stage).received.at(route.message);
  }

  int here() const { return seat_.stage; }

  RankMemory& rank_;
  StageMemory& memory_;
  const Graph& graph_;
  const std::vector<NodeId>& nodes_;
  const Backend* backend_;
  const Profile& profile_;
  const Crossing& crossing_;
  const std::vector<int> stage_of_;
  const std::vector<Action>& of_rank_;
  const Seat seat_;
  const Slots slots_;
  const bool train_;
  int end_ = 0;  // the last time so far
  std::map<NodeId, int> position_;
  std::set<NodeId> sent_, received_;
  std::set<int> own_stages_;  // the rank's others
  std::vector<std::pair<Ring*, TensorSpec>> requests_;
  std::vector<Lifetime> lifetimes_;
  ArenaLayout layout_;
  std::vector<std::pair<Ring*, Ring*>> sums_;
};

// A FormBuilder lays out the gradients of one form of the stage's backward.
class RankMemory::StageBuilder::FormBuilder {
 public:
  FormBuilder(StageBuilder& stage, BackwardMemory& memory, bool parted)
      : stage_(stage), graph_(stage.graph_), memory_(memory), parted_(parted), end_(stage.end_) {}

  void lay_out_gradients() {
    for (NodeId id : stage_.nodes_)
      if (graph_.needs_gradient(id)) output_gradient(id);
    for (NodeId id : stage_.nodes_) memory_.contributions[id].resize(graph_[id].inputs.size());
    std::set<NodeId> tensors;
    for (NodeId id : stage_.nodes_) tensors.insert(graph_[id].inputs.begin(), graph_[id].inputs.end());
    for (NodeId tensor : tensors)
      if (graph_.needs_gradient(tensor)) fold(tensor);
  }

  // These are received from the end of the bucket's last backward on: first a part of the other replicas'
  // gradients, then their sums of other parts.
  void lay_out_terms() {
    const std::vector<GradientBucket> buckets = gradient_buckets(
        stage_.profile_, stage_.nodes_, std::max(1, buckets_in(stage_.of_rank_, stage_.here())));
    const std::vector<ByteRange> ranges = bucket_ranges(graph_, stage_.nodes_, buckets);
    stage_.memory_.terms.resize(buckets.size());
    for (size_t k = 0; k < buckets.size(); ++k) {
      int64_t bytes = part_alignment_bytes;
      for (int i = 0; i < stage_.seat_.replicas; ++i)
        bytes = std::max(bytes, equal_part(ranges[k].bytes, i, stage_.seat_.replicas).bytes);
      stage_.memory_.terms[k].resize(size_t(stage_.seat_.replicas - 1));
      const int first = backward_at(stage_.nodes_[size_t(buckets[k].first)]) + 1;
      for (Ring& ring : stage_.memory_.terms[k])
        stage_.in_arena(ring, {{bytes / int64_t(sizeof(float))}}, first, end_);
    }
  }

 private:
  int backward_at(NodeId id) const { return end_ - 1 - stage_.position_.at(id); }

  void output_gradient(NodeId id) {
    const auto terms = gradient_fold(stage_.profile_, stage_.stage_of_, id);
    if (terms.empty())
      throw Error("node '" + graph_[id].name + "' of model '" + graph_.model() +
                      "' has parameters before it but no loss after it",
                  "remove it or connect it to a loss");
    OutputGradient& out = memory_.gradient[id];
    out.starts = true;
    int first = backward_at(id);
    for (const FoldTerm& term : terms) {
      if (term.stage == stage_.stage_of_[id]) {
        out.starts = false;
        out.received_after.clear();
        first = std::min(first, backward_at(term.message.consumer));
      } else {
        out.received_after.push_back(term.message);
      }
    }
    if (terms.size() == 1 && out.starts && !outlives(id)) return;  // dy is the received tensor itself
    if (outlives(id))
      out.sum = stage_.own_ring(graph_[id].output(), stage_.slots_.held_gradients);
    else
      stage_.in_arena(out.sum, graph_[id].output(), first, backward_at(id));
  }

  // Walks the fold of one tensor and tells each local consumer where its contribution goes.
  void fold(NodeId tensor) {
    const auto terms = gradient_fold(stage_.profile_, stage_.stage_of_, tensor);
    std::vector<Message> waiting;
    bool starts = true;
    for (const FoldTerm& term : terms) {
      if (term.stage != stage_.here()) {
        waiting.push_back(term.message);
        continue;
      }
      if (stage_.local(tensor)) {
        OutputGradient& out = memory_.gradient[tensor];
        contribute(term.message.consumer, tensor, out.sum, std::exchange(waiting, {}), starts);
        starts = false;
        if (&term == &terms.back()) leave_last_term(term.message.consumer, tensor, out);
      } else {  // one message per term; only the first term can be a run of several consumers
        starts = true;
        const auto& consumers = graph_.consumers(tensor);
        const NodeId highest = &term == &terms.front() ? consumers.back() : term.message.consumer;
        for (auto c = consumers.rbegin(); c != consumers.rend(); ++c)
          if (*c <= highest && *c >= term.message.consumer)
            contribute(*c, tensor, stage_.memory_.sent.at(term.message), {}, std::exchange(starts, false));
      }
    }
  }

  // Leaves the last consumer's term beside the sum where the kernel that reads the sum can add it. A sum that
  // outlives this backward is kept whole.
  void leave_last_term(NodeId consumer, NodeId tensor, OutputGradient& out) {
    const std::vector<NodeId>& inputs = graph_[consumer].inputs;
    if (!graph_[tensor].lowering.adds_dy || std::ranges::count(inputs, tensor) > 1 || outlives(tensor))
      return;
    Contribution& c =
        memory_.contributions[consumer][size_t(std::ranges::find(inputs, tensor) - inputs.begin())];
    if (c.written_directly()) return;
    c.left = true;
    stage_.lifetimes_.back().last = backward_at(tensor);  // the term's, which was asked for last
    stage_.sums_.push_back({&out.term, &c.term});
  }

  bool outlives(NodeId id) const {  // the weight half comes later
    return parted_ && !graph_[id].signature.params.empty();
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
      stage_.sums_.push_back({&c.sum, &sum});
      if (!c.written_directly())
        stage_.in_arena(c.term, graph_[tensor].output(), backward_at(consumer), backward_at(consumer));
    }
  }

  StageBuilder& stage_;
  const Graph& graph_;
  BackwardMemory& memory_;
  const bool parted_;
  const int end_;  // the time of the all-reduce
};

void RankMemory::StageBuilder::add_form(BackwardMemory& memory, const std::set<Verb>& verbs) {
  const auto is_of_form = [&](const Action& a) { return a.stage == here() && verbs.contains(a.verb); };
  if (std::ranges::none_of(of_rank_, is_of_form)) return;
  end_ += int(nodes_.size()) + 1;
  FormBuilder form(*this, memory, verbs.contains(Verb::backward_weight));
  form.lay_out_gradients();
  if (seat_.replicas > 1 && is_of_form(of_rank_[size_t(last_gradient(of_rank_, here()))]))
    form.lay_out_terms();
}

class RankMemory::Builder {
 public:
  Builder(RankMemory& memory, const Graph& graph, const Backend* backend, const Profile& profile,
          const Plan& plan, const Schedule& schedule, int rank, Mode mode)
      : memory_(memory), backend_(backend), crossing_(crossing_of(profile, plan)) {
    const RankSlots slots = antichain::slots(schedule)[size_t(rank)];
    for (const Seat& seat : seats_of(plan, rank, schedule.microbatches))
      stages_.emplace_back(memory, graph, backend, profile, plan, crossing_, schedule.ranks[size_t(rank)],
                           slots.at(seat.stage), seat, mode == Mode::train);
  }

  void build() {
    int64_t arena_bytes = 0;
    for (StageBuilder& stage : stages_) {
      stage.ask();
      arena_bytes = std::max(arena_bytes, stage.arena_bytes());
    }
    memory_.bytes_ += arena_bytes;
    if (!backend_) return;
    memory_.arena_ = backend_->tensor({{std::max<int64_t>(arena_bytes, 64)}, DType::u8});
    for (StageBuilder& stage : stages_) stage.place(memory_.arena_);
  }

 private:
  RankMemory& memory_;
  const Backend* backend_;
  const Crossing crossing_;
  std::list<StageBuilder> stages_;  // ascending
};

RankMemory::RankMemory(RankModel& model, const Profile& profile, const Plan& plan, const Schedule& schedule,
                       int rank, Mode mode) {
  Builder(*this, model.graph(), &model.context().backend(), profile, plan, schedule, rank, mode).build();
}

int64_t RankMemory::bytes_needed(const Graph& graph, const Profile& profile, const Plan& plan,
                                 const Schedule& schedule, int rank, Mode mode) {
  RankMemory memory;
  Builder(memory, graph, nullptr, profile, plan, schedule, rank, mode).build();
  return memory.bytes();
}

}  // namespace antichain
