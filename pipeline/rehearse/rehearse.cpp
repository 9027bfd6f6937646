#include "pipeline/rehearse/rehearse.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "framework/error.h"

namespace antichain {
namespace {

constexpr double least_nap_s = 1e-3;  // between two checks for messages: ranks outnumber cores
constexpr double lead_s = 0.02;       // from announcing a step to its beginning
constexpr int64_t token_bytes = 64;

const Plan& of_this_job(const Plan& plan, const Schedule& schedule, const Transport& transport) {
  if (plan.ranks() != transport.size() || int(schedule.ranks.size()) != transport.size())
    throw Error(fmt::format("the plan is for {} ranks, but {} rehearse it", plan.ranks(), transport.size()),
                "start as many ranks as the plan has", ExitCode::usage);
  return plan;
}

// A Postmark stands at the beginning of every message and overwrites the payload's own bytes.
struct Postmark {
  double delivered_s = 0;  // by the simulated link
  double posted_s = 0;     // by the clock
  double late_s = 0;       // part of posted_s: the sender's delay
};

std::vector<Tensor> buffers(int count, int64_t bytes) {
  const int64_t least = int64_t(sizeof(Postmark));
  std::vector<Tensor> ring;
  for (int i = 0; i < std::max(count, 1); ++i)
    ring.push_back(Tensor::host({.shape = {std::max(bytes, least)}, .dtype = DType::u8}));
  return ring;
}

}  // namespace

Rehearsal::Rehearsal(const Profile& profile, const Plan& plan, const Schedule& schedule,
                     const Cluster& cluster, Transport& transport, const RehearseOptions& options)
    : profile_(profile),
      schedule_(schedule),
      cluster_(cluster),
      plan_(of_this_job(plan, schedule, transport)),
      transport_(transport),
      options_(options),
      seconds_(plan, profile, cluster, schedule),
      program_(compile(schedule, profile, plan)),
      messages_(
          own(), transport, [this](BufferId buffer, int m) -> const Tensor& { return tensor(buffer, m); },
          [this](const Message& message) { return "rehearsed " + name(message); },
          {{reduce_channel(), "a rehearsed all-reduce, bucket"}, {vote_channel(), "a rehearsed vote,"}}),
      time_(transport) {
  for (const int stage : stages_of_rank(plan, transport.rank()))
    for (const Verb verb :
         {Verb::forward, Verb::backward, Verb::backward_input, Verb::backward_weight, Verb::update})
      node_ends_[{stage, verb}] = node_ends(stage, verb);
  lay_out();
  for (const Instruction& i : own().instructions) labels_.push_back(label(i));
}

void Rehearsal::lay_out() {
  for (const Instruction& i : own().instructions) {
    if (i.channel < 0) continue;
    const BufferId id = i.verb == Verb::send ? i.reads.front() : i.writes.front();
    const Buffer& buffer = own().buffers[size_t(id)];
    const int64_t bytes = buffer.spec.bytes();
    std::vector<Tensor>& copies = copies_[id];
    if (copies.empty())
      copies =
          buffers(buffer.copies, options_.true_payload || bytes <= largest_true_bytes ? bytes : token_bytes);
  }
}

const Tensor& Rehearsal::tensor(BufferId buffer, int microbatch) const {
  const std::vector<Tensor>& copies = copies_.at(buffer);
  return copies[size_t(microbatch / own().buffers[size_t(buffer)].replicas) % copies.size()];
}

std::string Rehearsal::name(const Message& message) const {
  return fmt::format("{} of node {}", words_of(message.flow), profile_.nodes[size_t(message.tensor)].name);
}

// Returns when the stage's nodes end, in the order in which the runner executes them. The last is the
// action's simulated end. Nodes shorter than a nap are combined.
std::vector<double> Rehearsal::node_ends(int stage, Verb verb) const {
  const int rank = transport_.rank();
  const double all_s = seconds_(rank, stage, verb) * options_.time_scale;
  const double factor = options_.time_scale / cluster_.device(plan_.device_of(rank)).speed;
  const Profile& times = times_of(plan_.stages[size_t(stage)], plan_, profile_, cluster_);
  std::vector<int> order = plan_.stages[size_t(stage)].nodes;
  if (category_of(verb) == "backward") std::ranges::reverse(order);
  std::vector<double> ends;
  double end_s = 0;
  const auto updated_by = double(plan_.shard_optimiser ? plan_.stages[size_t(stage)].ranks.size() : 1);
  for (const int n : order) {
    const NodeCost& cost = times.nodes[size_t(n)].cost;
    end_s += factor * (verb == Verb::forward           ? cost.forward_s
                       : verb == Verb::backward        ? cost.backward_s()
                       : verb == Verb::backward_input  ? cost.backward_input_s
                       : verb == Verb::backward_weight ? cost.late_weight_s()
                                                       : cost.update_s / updated_by);
    const bool apart = end_s - (ends.empty() ? 0 : ends.back()) >= least_nap_s;
    if (apart && all_s - end_s >= least_nap_s) ends.push_back(end_s);
  }
  ends.push_back(all_s);
  return ends;
}

// Labels the action for the watchdog.
std::string Rehearsal::label(const Action& a) const {
  const bool message = a.verb == Verb::send || a.verb == Verb::recv;
  return fmt::format("{} rehearsed {}{}{}", print(a), category_of(a.verb),
                     message ? " of the " + name(a.message) : "",
                     a.microbatch < 0 ? "" : fmt::format(", micro-batch {}", a.microbatch));
}

Timeline Rehearsal::step() {
  begin();
  return collect(play());
}

Timeline Rehearsal::overlapping_steps(int steps) {
  ANTICHAIN_CHECK(steps >= 2, "the period is the distance of two steps");
  begin();
  std::vector<std::vector<double>> times;
  for (int step = 0; step < steps; ++step) times.push_back(play());
  std::vector<Timeline> each;
  for (const std::vector<double>& of_step : times) each.push_back(collect(of_step));
  // The first half brings the pipeline to its steady state.
  const int first = (steps - 1) / 2, counted = steps - 1 - first;
  Timeline last = each.back();
  last.step_s = each.front().step_s;
  last.period_s = (each.back().length_s() - each[size_t(first)].length_s()) / (counted * schedule_.steps);
  begin_at_zero(last);
  return last;
}

// One step, which begins when this rank's own last one has ended. Returns start and end of every action, and
// the clock's time at the end.
std::vector<double> Rehearsal::play() {
  messages_.begin_step();
  std::vector<double> times;
  for (size_t i = 0; i < own().instructions.size(); ++i) {
    times.push_back(time_.here_s() - begin_s_);
    transport_.job().activity().doing(labels_[i]);
    execute(i);
    messages_.done(i);
    times.push_back(time_.here_s() - begin_s_);
  }
  times.push_back(time_.clock_s() - begin_s_);
  transport_.job().activity().doing("delivering the last messages of the rehearsed step");
  transport_.flush();
  return times;
}

void Rehearsal::stamp(const Tensor& tensor, double delivered_s) const {
  const Postmark postmark{delivered_s, time_.clock_s(), time_.late_s()};
  std::memcpy(tensor.raw(), &postmark, sizeof postmark);
}

double Rehearsal::await(Transport::Ticket ticket, const Tensor& tensor) {
  const double asked_s = time_.asked_s();
  transport_.wait(ticket);
  return opened(asked_s, tensor);
}

// Returns when the message was delivered that has arrived in the tensor.
double Rehearsal::opened(double asked_s, const Tensor& tensor) {
  Postmark postmark;
  std::memcpy(&postmark, tensor.raw(), sizeof postmark);
  time_.got(asked_s, postmark.posted_s, postmark.late_s);
  return postmark.delivered_s;
}

// All ranks begin at the same moment, which rank 0 announces.
void Rehearsal::begin() {
  link_free_s_.clear();
  added_up_s_ = 0;
  transport_.job().barrier();
  const double begin_s = time_.clock_s() + lead_s;
  const std::string word =
      transport_.job().broadcast(std::string(reinterpret_cast<const char*>(&begin_s), sizeof begin_s));
  std::memcpy(&begin_s_, word.data(), sizeof begin_s_);
  time_.begin(begin_s_);
}

void Rehearsal::execute(size_t index) {
  const Instruction& action = own().instructions[index];
  switch (action.verb) {
    case Verb::load:
      return;
    case Verb::recv:
      return wait(index);
    case Verb::send:
      return send(index);
    case Verb::reduce:
      return reduce(action);
    case Verb::vote:
      return vote();
    case Verb::forward:
    case Verb::backward:
    case Verb::backward_input:
    case Verb::backward_weight:
    case Verb::update:
      return compute(action);
  }
}

void Rehearsal::compute(const Action& action) {
  const double begin_s = time_.here_s();
  if (action.verb == Verb::backward || action.verb == Verb::backward_weight)
    last_ = action, last_begin_s_ = begin_s;
  for (const double end_s : node_ends_.at({action.stage, action.verb})) {
    time_.sleep_until(begin_s + end_s);
    transport_.progress();
  }
}

// The link is the simulator's: it carries one message at a time from one rank to another, in posting order.
void Rehearsal::send(size_t index) {
  const Instruction& a = own().instructions[index];
  const Link& link = cluster_.link(plan_.device_of(transport_.rank()), plan_.device_of(a.peer));
  double& free_s = link_free_s_[a.peer];
  free_s = std::max(free_s, time_.here_s()) +
           options_.time_scale * link.seconds(message_bytes(profile_, a.message));
  stamp(tensor(a.reads.front(), a.microbatch), free_s);
  messages_.send(index);
}

void Rehearsal::wait(size_t index) {
  const Instruction& a = own().instructions[index];
  const double asked_s = time_.asked_s();
  messages_.wait(index);
  time_.sleep_until(opened(asked_s, tensor(a.writes.front(), a.microbatch)));
}

// A bucket's all-reduce begins when its gradients are there on every replica and the bucket before is done.
// It takes as long as the simulator says.
void Rehearsal::reduce(const Action& action) {
  const int me = transport_.rank(), key = std::max(action.bucket, 0);
  double last_s = last_begin_s_ + options_.time_scale * seconds_.passed_s(me, last_, action);
  const Tensor mine = buffers(1, 0)[0];
  stamp(mine, last_s);
  std::vector<std::pair<Transport::Ticket, Tensor>> others;
  for (const int peer : plan_.stages[size_t(action.stage)].ranks) {
    if (peer == me) continue;
    const Tensor theirs = buffers(1, 0)[0];
    others.push_back({transport_.recv({reduce_channel(), key}, peer, theirs), theirs});
    transport_.send({reduce_channel(), key}, peer, mine);
  }
  for (const auto& [ticket, theirs] : others) last_s = std::max(last_s, await(ticket, theirs));
  added_up_s_ = std::max(last_s, added_up_s_) + options_.time_scale * seconds_(me, action);
  time_.sleep_until(added_up_s_);
}

// Every rank tells rank 0 that it has come, and rank 0 tells all that the last one has.
void Rehearsal::vote() {
  const int me = transport_.rank(), ranks = transport_.size();
  const auto takes_s = [&](int from, int to) {
    return options_.time_scale * vote_s(plan_, cluster_, from, to);
  };
  const Tensor mine = buffers(1, 0)[0];
  const auto tell = [&](int peer, double delivered_s) {
    stamp(mine, delivered_s);
    transport_.send({vote_channel(), 0}, peer, mine);
    transport_.flush();  // the next one overwrites it
  };
  const auto hear = [&](int peer) {
    const Tensor theirs = buffers(1, 0)[0];
    return await(transport_.recv({vote_channel(), 0}, peer, theirs), theirs);
  };
  if (me > 0) {
    tell(0, time_.here_s() + takes_s(me, 0));
    return time_.sleep_until(hear(0));
  }
  double met_s = time_.here_s();
  for (int peer = 1; peer < ranks; ++peer) met_s = std::max(met_s, hear(peer));
  time_.sleep_until(met_s);
  for (int peer = 1; peer < ranks; ++peer) tell(peer, met_s + takes_s(0, peer));
}

Timeline Rehearsal::collect(const std::vector<double>& times) {
  const std::string mine(reinterpret_cast<const char*>(times.data()), times.size() * sizeof(double));
  std::vector<std::string> all = transport_.job().gather(mine);
  if (all.empty()) {
    all.resize(size_t(transport_.size()));
    all[size_t(transport_.rank())] = mine;
  }
  Timeline timeline{.busy_s = std::vector<double>(all.size(), 0)};
  for (size_t r = 0; r < all.size(); ++r) {
    if (all[r].empty()) continue;  // only rank 0 knows the others' times
    std::vector<double> of_rank(all[r].size() / sizeof(double));
    std::memcpy(of_rank.data(), all[r].data(), all[r].size());
    wall_s_ = std::max(r == 0 ? 0 : wall_s_, of_rank.back());
    for (size_t i = 0; 2 * i + 1 < of_rank.size(); ++i) {
      const Action& action = schedule_.ranks[r][i];
      const double start_s = of_rank[2 * i] / options_.time_scale;
      const double end_s = of_rank[2 * i + 1] / options_.time_scale;
      if (computes(action.verb) || action.verb == Verb::update) timeline.busy_s[r] += end_s - start_s;
      timeline.step_s = timeline.period_s = std::max(timeline.step_s, end_s);
      timeline.events.push_back({int(r), action, start_s, end_s});
    }
  }
  share_out(timeline, schedule_);
  return timeline;
}

double comfortable_time_scale(const Profile& profile, const Plan& plan, const Cluster& cluster) {
  constexpr double comfortable_s = 0.01, slow_s = 0.1;
  double shortest_s = INFINITY, slowest_s = 0;
  const ActionSeconds seconds(plan, profile, cluster);
  for (int rank = 0; rank < plan.ranks(); ++rank)
    for (const int stage : stages_of_rank(plan, rank)) {
      const double stage_s = seconds(rank, stage, Verb::forward) + seconds(rank, stage, Verb::backward);
      shortest_s = std::min(shortest_s, stage_s);
      slowest_s = std::max(slowest_s, stage_s);
    }
  if (slowest_s <= 0) return 1;
  const double wanted = shortest_s > 0 ? comfortable_s / shortest_s : INFINITY;
  return std::max(1., std::min(wanted, slow_s / slowest_s));
}

}  // namespace antichain
