#include "pipeline/run/replica_sum.h"

#include "pipeline/schedule/lane.h"
#include "pipeline/stage/parts.h"

namespace antichain {
namespace {

Tensor floats(const Tensor& whole, const ByteRange& extent) {
  return part_of(whole, extent.begin_bytes, {{extent.bytes / int64_t(sizeof(float))}});
}

}  // namespace

ReplicaSum::ReplicaSum(Stage& stage, const StageMemory& memory, const std::vector<int>& ranks,
                       const Seat& seat, int first_channel)
    : context_(stage.context()), own_(seat.replica) {
  const auto part = [&](int replica) {
    const Tensor& all = stage.gradients();
    return floats(all, equal_part(all.bytes(), replica, seat.replicas));
  };
  const auto item = [&](bool sends, SumChannel channel, int microbatch, int replica, const Tensor& tensor) {
    const MessageKey key{first_channel + int(channel), microbatch};
    const int group = channel == SumChannel::sums ? 2 : 1;
    return Item{{sends, key, ranks[size_t(replica)], group, lane_of_flow(Flow::gradient)}, tensor};
  };
  part_ = part(own_);
  for (const Ring& ring : memory.terms) terms_.push_back(ring[0]);
  for (const bool sends : {true, false}) {
    auto term = terms_.begin();
    for (int peer = 0; peer < seat.replicas; ++peer) {
      if (peer == own_) continue;
      const Tensor theirs = part(peer), &in_first = sends ? theirs : part_, &in_then = sends ? part_ : theirs;
      if (in_first.bytes() > 0)
        first_.push_back(item(sends, SumChannel::gradients, 0, peer, sends ? theirs : *term++));
      for (int m = sends ? own_ : peer; m < int(memory.all_statistics.size()); m += seat.replicas)
        first_.push_back(item(sends, SumChannel::statistics, m, peer, memory.all_statistics[size_t(m)]));
      if (in_then.bytes() > 0) then_.push_back(item(sends, SumChannel::sums, 0, peer, in_then));
    }
  }
}

void ReplicaSum::run(Transport& transport) const {
  exchange(transport, first_);
  add_up();
  // What arrives next lies where the first messages were sent from. It is made of them, so it can't come
  // before they have arrived; but host memory that is still being sent MPI won't receive into. Messages in
  // one order leave in it, too.
  if (context_.backend().host_memory() && !transport.ordered()) transport.flush();
  exchange(transport, then_);
}

void ReplicaSum::exchange(Transport& transport, const std::vector<Item>& items) const {
  std::vector<Transport::Ticket> coming;
  for (const auto& [turn, tensor] : items)
    if (!turn.sends) coming.push_back(transport.recv(turn.key, turn.peer, tensor));
  for (const auto& [turn, tensor] : items)
    if (turn.sends) transport.send(turn.key, turn.peer, tensor);
  for (const Transport::Ticket ticket : coming) transport.wait(ticket);
}

// ((g0 + g1) + g2) + …, wherever its own stands among them. What comes before it is gathered in the first
// term.
void ReplicaSum::add_up() const {
  const Backend& backend = context_.backend();
  for (size_t i = 0; i < terms_.size(); ++i) {
    const bool before = int(i) < own_;
    if (before && i > 0) backend.add(context_, terms_[i], terms_[0]);
    if (int(i) + 1 == own_) backend.add(context_, terms_[0], part_);
    if (!before) backend.add(context_, terms_[i], part_);
  }
}

std::vector<Turn> ReplicaSum::turns() const {
  std::vector<Turn> all;
  for (const Item& item : first_) all.push_back(item.turn);
  for (const Item& item : then_) all.push_back(item.turn);
  return all;
}

}  // namespace antichain
