#include "pipeline/program/stage_operands.h"

#include "pipeline/program/gradient_tensors.h"
#include "pipeline/program/parts.h"
#include "pipeline/schedule/gradient_buckets.h"

namespace antichain {

StageOperands::StageOperands(RankProgram& rank, const StepNetwork& network, const Profile& profile,
                             const Plan& plan, const Crossing& crossing, const std::vector<Action>& of_rank,
                             const Seat& seat, Mode mode)
    : rank_(rank),
      tensors_(rank.stages[seat.stage]),
      network_(network),
      profile_(profile),
      plan_(plan),
      crossing_(crossing),
      of_rank_(of_rank),
      seat_(seat),
      trains_(mode == Mode::train),
      nodes_(plan.stages[size_t(seat.stage)].nodes),
      recomputed_(trains_ ? plan.stages[size_t(seat.stage)].recomputed : std::vector<int>()),
      stage_of_(plan.stage_of(int(network.size()))),
      consumers_(profile.consumers()),
      position_(network.size(), -1),
      end_(int(nodes_.size())) {
  for (size_t i = 0; i < nodes_.size(); ++i) position_[size_t(nodes_[i])] = int(i);
  for (const Action& a : of_rank_) {
    if (a.stage != here())
      own_stages_.insert(a.stage);
    else if (a.message.flow == Flow::activation && (a.verb == Verb::send || a.verb == Verb::recv))
      (a.verb == Verb::send ? sent_ : received_).insert(a.message.tensor);
  }
}

void StageOperands::add() {
  add_outputs();
  if (!trains_) return;
  add_stash();
  add_statistics();
  add_gradients();
}

BufferId StageOperands::ring(Content content, int node, const TensorSpec& spec) {
  rank_.buffers.push_back({content, here(), node, spec, seat_.replicas});
  return BufferId(rank_.buffers.size()) - 1;
}

BufferId StageOperands::passing(Content content, int node, const TensorSpec& spec, int first, int last) {
  rank_.buffers.push_back(
      {content, here(), node, spec, 1, 1, {.bytes = spec.bytes(), .first = first, .last = last}, true});
  return BufferId(rank_.buffers.size()) - 1;
}

namespace {

void add_once(std::vector<BufferId>& buffers, BufferId buffer) {
  if (std::ranges::find(buffers, buffer) == buffers.end()) buffers.push_back(buffer);
}

}  // namespace

void StageOperands::read(Verb verb, BufferId buffer) {
  if (!rank_.buffers[size_t(buffer)].passing) add_once(rank_.of_compute[{here(), verb}].reads, buffer);
}

void StageOperands::write(Verb verb, BufferId buffer) {
  if (!rank_.buffers[size_t(buffer)].passing) add_once(rank_.of_compute[{here(), verb}].writes, buffer);
}

void StageOperands::write_back(BufferId buffer) {
  write(Verb::backward, buffer);
  write(Verb::backward_input, buffer);
}

void StageOperands::read_back(BufferId buffer) {
  read(Verb::backward, buffer);
  read(Verb::backward_input, buffer);
}

// The weight half calls only nodes that have weights.
void StageOperands::read_again(int node, BufferId buffer) {
  if (!network_[size_t(node)].has_backward) return;
  read_back(buffer);
  if (network_[size_t(node)].learns) read(Verb::backward_weight, buffer);
}

bool StageOperands::read_again_by(int node, int output) const {
  const StepNode& of = network_[size_t(node)];
  return trains_ && of.has_backward && (node == output ? of.rereads_output : of.rereads(output));
}

// Says whether an own output is needed after the stage's forward: by a backward, by another rank, or by
// another stage of this one.
bool StageOperands::outlives_forward(int node) const {
  const bool kept = !recomputes(node);
  return (kept && read_again_by(node, node)) || sent_.contains(node) ||
         std::ranges::any_of(consumers_[size_t(node)], [&](int c) {
           return near(stage_of_[size_t(c)]) ||
                  (kept && local(c) && (read_again_by(c, node) || recomputes(c)));
         });
}

// Returns the one node that reads this output, where it may write its own over it: no backward reads the
// output, and it has the same form. −1: there is none.
int StageOperands::written_over_by(int node) const {
  const std::vector<int>& readers = consumers_[size_t(node)];
  if (!local(node) || readers.size() != 1 || !local(readers.front())) return -1;
  const int reader = readers.front();
  const bool fits =
      network_[size_t(reader)].in_place && network_[size_t(reader)].output == network_[size_t(node)].output;
  return fits && !read_again_by(node, node) && !read_again_by(reader, node) ? reader : -1;
}

void StageOperands::add_outputs() {
  std::set<int> used(nodes_.begin(), nodes_.end());
  for (const int n : nodes_)
    used.insert(network_[size_t(n)].inputs.begin(), network_[size_t(n)].inputs.end());
  std::vector<int> over;  // what is written over, ascending
  for (const int n : used) {
    if (written_over_by(n) >= 0 && !outlives_forward(n)) {
      over.push_back(n);
      continue;
    }
    add_output(n);
    if (recomputes(n)) continue;  // what the backward reads again is elsewhere
    const BufferId buffer = tensors_.output.at(n);
    if (local(n) && read_again_by(n, n)) read_again(n, buffer);
    for (const int c : consumers_[size_t(n)]) {
      if (local(c) && read_again_by(c, n)) read_again(c, buffer);
      if (local(c) && recomputes(c)) read_back(buffer);
    }
  }
  for (auto n = over.rbegin(); n != over.rend(); ++n) {
    const BufferId buffer = tensors_.output[*n] = tensors_.output.at(written_over_by(*n));
    rank_.buffers[size_t(buffer)].lifetime.first = position(*n);
  }
}

// The tensor is an own node's output, a loaded input, a received activation, or an earlier stage's of the
// rank.
void StageOperands::add_output(int node) {
  const StepNode& of = network_[size_t(node)];
  BufferId& buffer = tensors_.output[node];
  if (local(node)) {
    if (outlives_forward(node)) {
      write(Verb::forward, buffer = ring(Content::output, node, of.output));
      return;
    }
    // The loss is read after the whole forward.
    int last = of.role == Role::loss ? int(nodes_.size()) : position(node);
    for (const int c : consumers_[size_t(node)]) last = std::max(last, position(c));
    buffer = passing(Content::output, node, of.output, position(node), last);
    return;
  }
  if (of.role == Role::input)
    write(Verb::load, buffer = ring(Content::input, node, of.output));
  else if (received_.contains(node))
    buffer = ring(Content::received, node, of.output);
  else
    buffer = rank_.stages.at(stage_of_[size_t(node)]).output.at(node);
  read(Verb::forward, buffer);
}

void StageOperands::add_stash() {
  for (const int n : nodes_)
    for (const TensorSpec& spec : network_[size_t(n)].stash) {
      const bool kept = network_[size_t(n)].has_backward && !recomputes(n);
      const BufferId buffer = tensors_.stash[n].emplace_back(
          kept ? ring(Content::stash, n, spec) : passing(Content::stash, n, spec, position(n), position(n)));
      write(Verb::forward, buffer);
      if (kept) read_again(n, buffer);
    }
}

// Returns the most micro-batches between their forwards and backwards.
int StageOperands::in_flight() const {
  int now = 0, most = 0;
  for (const Action& a : of_rank_) {
    if (a.stage != here()) continue;
    if (a.verb == Verb::forward) most = std::max(most, ++now);
    now -= a.verb == Verb::backward || a.verb == Verb::backward_weight;
  }
  return most;
}

// Every micro-batch has one block until its step's update, which travels as one message.
void StageOperands::add_statistics() {
  int64_t bytes = 0;
  for (const int n : nodes_)
    for (const TensorSpec& spec : network_[size_t(n)].statistics) {
      tensors_.statistics[n].push_back({bytes, spec});
      bytes += part_room(spec.bytes());
    }
  if (bytes == 0) return;
  tensors_.all_statistics = ring(Content::statistics, -1, {{bytes}, DType::u8});
  rank_.buffers.back().replicas = 1;
  // Where steps follow each other, those that are in flight may be of the next ones.
  rank_.buffers.back().copies =
      std::min(seat_.microbatches,
               seat_.microbatches_of_step() + (seat_.steps > 1 ? in_flight() * seat_.replicas : 0));
  write(Verb::forward, tensors_.all_statistics);
  read(Verb::update, tensors_.all_statistics);
}

void StageOperands::add_gradients() {
  for (const Action& a : of_rank_) {
    const bool sends = a.verb == Verb::send;
    if (a.stage != here() || a.message.flow != Flow::gradient || (!sends && a.verb != Verb::recv)) continue;
    auto& buffers = sends ? tensors_.sent : tensors_.received;
    if (buffers.contains(a.message)) continue;
    const int node = a.message.tensor;
    const BufferId buffer = buffers[a.message] =
        ring(sends ? Content::gradient : Content::received, node, network_[size_t(node)].output);
    sends ? write_back(buffer) : read_back(buffer);
  }
  for (const Route& route : crossing_.gradients) share_gradient(route);
  add_backward(tensors_.whole, {Verb::backward});
  add_backward(tensors_.parted, {Verb::backward_input, Verb::backward_weight});
}

// Between two stages of the rank, the earlier one, which comes first here, has the gradient's buffer.
void StageOperands::share_gradient(const Route& route) {
  if (route.to_stage == here() && near(route.from_stage))
    read_back(tensors_.received[route.message] = ring(Content::gradient, route.message.tensor,
                                                      network_[size_t(route.message.tensor)].output));
  if (route.from_stage == here() && near(route.to_stage))
    write_back(tensors_.sent[route.message] = rank_.stages.at(route.to_stage).received.at(route.message));
}

// Adds the form of the backward that has these verbs, if the schedule has any of them here.
void StageOperands::add_backward(BackwardTensors& backward, const std::set<Verb>& verbs) {
  const auto is_of_form = [&](const Action& a) { return a.stage == here() && verbs.contains(a.verb); };
  if (std::ranges::none_of(of_rank_, is_of_form)) return;
  const BackwardOrder order = backward_order(network_, nodes_, position_, consumers_, recomputed_, end_ + 1);
  end_ = order.end;
  const bool parted = verbs.contains(Verb::backward_weight);
  add_recomputed(backward, order, parted);
  GradientTensors gradients(*this, backward, order, parted);
  gradients.add();
  for (int i = 0; i < int(of_rank_.size()) && tensors_.terms.empty(); ++i)
    if (const Action& a = of_rank_[size_t(i)]; a.verb == Verb::reduce && a.stage == here())
      if (is_of_form(of_rank_[size_t(last_gradient(of_rank_, i))])) gradients.add_terms();
}

// What the weight half reads again outlives the half that computes it.
void StageOperands::add_recomputed(BackwardTensors& backward, const BackwardOrder& order, bool parted) {
  for (size_t i = 0; i < nodes_.size(); ++i)
    for (const int again : order.again[i]) backward.again[nodes_[i]].push_back(nodes_[size_t(again)]);
  for (auto recomputed = recomputed_.rbegin(); recomputed != recomputed_.rend(); ++recomputed) {
    const int n = *recomputed;
    const StepNode& of = network_[size_t(n)];
    const int at = order.again_at[size_t(position(n))];
    const auto place = [&](Content content, const TensorSpec& spec, const std::vector<int>& readers) {
      int last = at;
      bool late = false;
      for (const int reader : readers) {
        last = std::max(last, order.backward_at[size_t(position(reader))]);
        late = late || (parted && network_[size_t(reader)].learns);
      }
      if (!late) return passing(content, n, spec, at, last);
      const BufferId buffer = ring(content, n, spec);
      write(Verb::backward_input, buffer);
      read(Verb::backward_weight, buffer);
      return buffer;
    };
    std::vector<int> readers;
    int last = at;
    if (read_again_by(n, n)) readers.push_back(n);
    for (const int c : consumers_[size_t(n)]) {
      if (local(c) && read_again_by(c, n)) readers.push_back(c);
      if (local(c) && recomputes(c)) last = std::max(last, order.again_at[size_t(position(c))]);
    }
    const int over = written_over_by(n);
    BufferId& output = backward.output[n];
    output =
        over >= 0 && recomputes(over) ? backward.output.at(over) : place(Content::output, of.output, readers);
    Lifetime& lifetime = rank_.buffers[size_t(output)].lifetime;
    lifetime.first = std::min(lifetime.first, at), lifetime.last = std::max(lifetime.last, last);
    for (const TensorSpec& spec : of.stash)
      backward.stash[n].push_back(
          place(Content::stash, spec, of.has_backward ? std::vector<int>{n} : std::vector<int>{}));
    // The statistics of the first forward are those that count.
    for (const TensorSpec& spec : of.statistics)
      backward.statistics[n].push_back(passing(Content::statistics, n, spec, at, at));
  }
}

}  // namespace antichain
