#include "pipeline/run/step_messages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "framework/error.h"
#include "framework/random.h"
#include "pipeline/run/action_text.h"
#include "pipeline/run/message_turns.h"
#include "pipeline/simulate/message_order.h"
#include "pipeline/transport/agree.h"

namespace antichain {

StepMessages::StepMessages(const Graph& graph, const Schedule& schedule, const RankMemory& memory,
                           Transport& transport)
    : schedule_(schedule),
      actions_(schedule.ranks[size_t(transport.rank())]),
      memory_(memory),
      transport_(transport),
      channels_(schedule) {
  list(graph);
}

void StepMessages::list(const Graph& graph) {
  const int me = transport_.rank();
  std::map<int, std::string> names;
  for (const Action& a : actions_) {
    if (a.verb == Verb::send) names[channels_(me, a.peer, a.message)] = describe(a.message, graph);
    if (a.verb != Verb::recv) continue;
    const int channel = channels_(a.peer, me, a.message);
    names[channel] = describe(a.message, graph);
    receives_of(a.message, a.stage).arrivals.push_back({a.peer, {channel, a.microbatch}});
  }
  for (const auto& [channel, name] : {std::pair(SumChannel::gradients, "gradients of a replica"),
                                      std::pair(SumChannel::sums, "gradients of all replicas"),
                                      std::pair(SumChannel::statistics, "statistics of a replica")})
    names[channels_.count() + int(channel)] = name;
  names_ = std::make_shared<const std::map<int, std::string>>(std::move(names));
}

// The times of any cluster give a safe order. The profile's own link, which all ranks know, gives a good one.
void StepMessages::agree_on_order(const Profile& profile, const Plan& plan, const ReplicaSum* sum) {
  const auto order = issue_order(message_order(schedule_, plan, profile, one_link(profile.link)),
                                 int(schedule_.ranks.size()));
  std::string all;
  for (const auto& indices : order) all += fmt::format("{}\n", fmt::join(indices, " "));
  agree(transport_.job(), "the order of messages", fmt::format("{:016x}", hash_bytes(all)));
  const int me = transport_.rank();
  turns_ = turns_of(order[size_t(me)], actions_, channels_, me, [&](int bucket, bool scatters) {
    return scatters ? sum->scatter_turns(bucket) : sum->gather_turns(bucket);
  });
}

void StepMessages::begin_step() {
  const int first = channels_.count(), end = first + int(SumChannel::statistics);
  transport_.name_messages([names = names_, first, end](MessageKey key, int, int) {
    const auto it = names->find(key.channel);
    const bool of_bucket = key.channel >= first && key.channel < end;
    return fmt::format("{}, {} {}", it == names->end() ? "a message" : it->second,
                       of_bucket ? "bucket" : "micro-batch", key.microbatch);
  });
  for (MessageReceives& r : receives_) r.posted = r.awaited = r.released = 0;
  transport_.begin_step(turns_);
  post_receives();
}

void StepMessages::send(const Action& a) {
  const StageMemory& memory = memory_.of(a.stage);
  const Tensor& tensor = a.message.flow == Flow::activation ? memory.output.at(a.message.tensor)[a.microbatch]
                                                            : memory.sent.at(a.message)[a.microbatch];
  transport_.send({channels_(transport_.rank(), a.peer, a.message), a.microbatch}, a.peer, tensor);
}

StepMessages::MessageReceives& StepMessages::receives_of(const Message& message, int stage) {
  const auto it = std::ranges::find(receives_, message, &MessageReceives::message);
  if (it != receives_.end()) return *it;
  const StageMemory& memory = memory_.of(stage);
  const Ring& ring =
      message.flow == Flow::activation ? memory.output.at(message.tensor) : memory.received.at(message);
  return receives_.emplace_back(MessageReceives{.message = message, .stage = stage, .ring = &ring});
}

void StepMessages::wait(const Action& a) {
  MessageReceives& r = receives_of(a.message, a.stage);
  ANTICHAIN_CHECK(r.awaited < r.posted && r.arrivals[r.awaited].key.microbatch == a.microbatch,
                  "receives are awaited in micro-batch order");
  transport_.wait(r.arrivals[r.awaited++].ticket);
}

// A receive may be posted as soon as its buffer's previous micro-batch is used up.
void StepMessages::post_receives() {
  for (MessageReceives& r : receives_)
    for (; r.posted < r.arrivals.size() && r.posted < r.released + size_t(r.ring->size()); ++r.posted) {
      Arrival& a = r.arrivals[r.posted];
      a.ticket = transport_.recv(a.key, a.peer, (*r.ring)[a.key.microbatch]);
    }
}

void StepMessages::release(int stage, Flow flow) {
  for (MessageReceives& r : receives_)
    if (r.stage == stage && r.message.flow == flow) ++r.released;
  post_receives();
}

}  // namespace antichain
