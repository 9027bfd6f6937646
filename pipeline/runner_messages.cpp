// The runner's messages: what they are called, the receives it posts ahead, and the order they go in where the transport
// has one.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "framework/error.h"
#include "framework/random.h"
#include "pipeline/agree.h"
#include "pipeline/message_order.h"
#include "pipeline/runner.h"

namespace antichain {

std::string StageRunner::describe(const Message& message) const {
  return fmt::format("{} of node {}", message.flow == Flow::activation ? "activation" : "gradient",
                     graph_[message.tensor].name);
}

std::string StageRunner::describe(const Action& a) const {
  switch (a.verb) {
    case Verb::load:
      return fmt::format("loading micro-batch {}", a.microbatch);
    case Verb::recv:
      return fmt::format("receiving the {}, micro-batch {}", describe(a.message), a.microbatch);
    case Verb::send:
      return fmt::format("sending the {}, micro-batch {}", describe(a.message), a.microbatch);
    case Verb::forward:
      return fmt::format("forward of micro-batch {}", a.microbatch);
    case Verb::backward:
      return fmt::format("backward of micro-batch {}", a.microbatch);
    case Verb::backward_input:
      return fmt::format("input gradients of micro-batch {}", a.microbatch);
    case Verb::backward_weight:
      return fmt::format("weight gradients of micro-batch {}", a.microbatch);
    case Verb::reduce:
      return "adding up the weight gradients of all replicas";
    case Verb::step:
      return "updating the weights";
  }
  return "";
}

void StageRunner::list_messages() {
  const int me = transport_.rank();
  std::map<int, std::string> names;
  for (const Action& a : own_actions()) {
    if (a.verb == Verb::send) names[channels_(me, a.peer, a.message)] = describe(a.message);
    if (a.verb == Verb::send && a.message.flow == Flow::activation) sent_.insert(a.message.tensor);
    if (a.verb != Verb::recv || a.microbatch != 0) continue;
    const Ring& ring = a.message.flow == Flow::activation ? memory_.output.at(a.message.tensor)
                                                          : memory_.received.at(a.message);
    const int channel = channels_(a.peer, me, a.message);
    names[channel] = describe(a.message);
    receives_.push_back({.message = a.message,
                         .peer = a.peer,
                         .channel = channel,
                         .ring = &ring,
                         .tickets = std::vector<Transport::Ticket>(size_t(schedule_.microbatches))});
  }
  names_ = std::make_shared<const std::map<int, std::string>>(std::move(names));
}

// Any cluster's times give a safe order; the profile's own link, which all ranks know, is near enough for a good one.
void StageRunner::agree_on_order(const Profile& network, const Plan& plan) {
  const auto order = issue_order(message_order(schedule_, plan, network, one_link(network.link)),
                                 int(schedule_.ranks.size()));
  std::string all;
  for (const auto& indices : order) all += fmt::format("{}\n", fmt::join(indices, " "));
  agree(transport_, "the order of messages", fmt::format("{:016x}", hash_bytes(all)));
  const int me = transport_.rank();
  for (const int index : order[size_t(me)]) {
    const Action& a = schedule_.ranks[size_t(me)][size_t(index)];
    const bool sends = a.verb == Verb::send;
    const int channel = sends ? channels_(me, a.peer, a.message) : channels_(a.peer, me, a.message);
    turns_.push_back({a.verb, {channel, a.microbatch}, a.peer});
  }
}

void StageRunner::begin_messages() {
  transport_.name_messages([names = names_](MessageKey key, int, int) {
    const auto it = names->find(key.channel);
    return fmt::format("{}, micro-batch {}", it == names->end() ? "a message" : it->second, key.microbatch);
  });
  for (Receive& r : receives_) r.posted = r.awaited = r.released = 0;
  transport_.begin_step(turns_);
  post_receives();
}

void StageRunner::send(const Action& a) {
  const Tensor& tensor = a.message.flow == Flow::activation
                             ? memory_.output.at(a.message.tensor)[a.microbatch]
                             : memory_.sent.at(a.message)[a.microbatch];
  transport_.send({channels_(transport_.rank(), a.peer, a.message), a.microbatch}, a.peer, tensor);
}

StageRunner::Receive& StageRunner::receive(const Action& a) {
  const auto it = std::ranges::find_if(
      receives_, [&](const Receive& r) { return r.message == a.message && r.peer == a.peer; });
  ANTICHAIN_CHECK(it != receives_.end(), "every channel receives micro-batch 0");
  return *it;
}

void StageRunner::wait(const Action& a) {
  Receive& r = receive(a);
  ANTICHAIN_CHECK(r.awaited == a.microbatch && r.posted > a.microbatch,
                  "receives are awaited in micro-batch order");
  transport_.wait(r.tickets[size_t(a.microbatch)]);
  ++r.awaited;
}

// A receive may be posted as soon as its buffer's previous micro-batch is used up.
void StageRunner::post_receives() {
  for (Receive& r : receives_)
    for (; r.posted < schedule_.microbatches && r.posted < r.released + r.ring->size(); ++r.posted)
      r.tickets[size_t(r.posted)] = transport_.recv({r.channel, r.posted}, r.peer, (*r.ring)[r.posted]);
}

void StageRunner::release(Flow flow, int microbatch) {
  for (Receive& r : receives_)
    if (r.message.flow == flow) r.released = microbatch + 1;
  post_receives();
}

}  // namespace antichain
