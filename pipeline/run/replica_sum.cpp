#include "pipeline/run/replica_sum.h"

#include <algorithm>
#include <utility>

#include "framework/backend.h"
#include "framework/error.h"
#include "pipeline/program/parts.h"
#include "pipeline/schedule/lane.h"

namespace antichain {
namespace {

Tensor floats(const Tensor& whole, int64_t begin_bytes, int64_t bytes) {
  return part_of(whole, begin_bytes, {{bytes / int64_t(sizeof(float))}});
}

}  // namespace

ReplicaSum::ReplicaSum(RankModel& model, const StageMemory& memory, const Shards& shards, const Seat& seat,
                       int first_channel, StepDevice& device)
    : context_(model.context()), device_(device), memory_(memory), seat_(seat) {
  while (buckets() < shards.buckets) add_bucket(model.gradients(), shards, first_channel);
}

void ReplicaSum::add_bucket(const Tensor& gradients, const Shards& shards, int first_channel) {
  const int number = int(buckets_.size());
  Bucket& bucket = buckets_.emplace_back();
  const auto item = [&](bool sends, SumChannel channel, int key, int replica, const Tensor& tensor) {
    const int group = 2 * number + (channel == SumChannel::sums ? 2 : 1);
    return Item{{sends,
                 {first_channel + int(channel), key},
                 shards.ranks[size_t(replica)],
                 group,
                 lane_of_flow(Flow::gradient)},
                tensor};
  };
  const StageTensors& tensors = memory_.tensors();
  const int statistics = tensors.all_statistics == no_buffer ? 0 : seat_.microbatches_of_step();
  // Each peer has a room, for its terms, and then for its sums: they arrive where the terms were, because the
  // gradients may still be on their way to the peer.
  for (const bool sends : {true, false}) {
    auto buffer = tensors.terms[size_t(number)].begin();
    for (int peer = 0; peer < seat_.replicas; ++peer) {
      if (peer == seat_.replica) continue;
      const Tensor room = memory_.at(*buffer++, 0);
      int64_t terms_end = 0, sums_end = 0;
      size_t own = 0;  // parts so far
      for (const Shard& shard : shards.all) {
        if (shard.bucket != number || (shard.owner != seat_.replica && shard.owner != peer)) continue;
        const Tensor part = floats(gradients, shard.of.begin_bytes, shard.of.bytes);
        const bool mine = shard.owner == seat_.replica;
        if (mine && !sends) {
          const Tensor term =
              floats(room, std::exchange(terms_end, terms_end + shard.of.bytes), part.bytes());
          if (own == bucket.parts.size()) bucket.parts.push_back({part, {}});
          bucket.parts[own++].terms.push_back(term);
          bucket.scatter.push_back(item(false, SumChannel::gradients, shard.number, peer, term));
        }
        if (!mine && sends)
          bucket.scatter.push_back(item(true, SumChannel::gradients, shard.number, peer, part));
        if (!shard.for_all || mine != sends) continue;
        const Tensor sum =
            mine ? part : floats(room, std::exchange(sums_end, sums_end + shard.of.bytes), part.bytes());
        bucket.gather.push_back(item(sends, SumChannel::sums, shard.number, peer, sum));
        if (!mine) bucket.received.emplace_back(sum, part);
      }
      if (number == 0)
        for (int m = sends ? seat_.replica : peer; m < statistics; m += seat_.replicas) {
          bucket.scatter.push_back(item(sends, SumChannel::statistics, m, peer, {}));
          bucket.scatter.back().statistics_of = m;
        }
    }
  }
}

ReplicaSum::Tickets ReplicaSum::exchange(Transport& transport, const std::vector<Item>& items) {
  Tickets coming;
  for (const Item& item : items)
    if (!item.turn.sends) coming.push_back(transport.recv(item.turn.key, item.turn.peer, item.tensor));
  for (const Item& item : items)
    if (item.turn.sends) transport.send(item.turn.key, item.turn.peer, item.tensor);
  return coming;
}

void ReplicaSum::begin(int bucket, int step, Transport& transport) {
  if (bucket == 0) begun_ = added_ = 0;
  ANTICHAIN_CHECK(bucket == begun_, "buckets begin one after the other");
  Bucket& b = buckets_[size_t(begun_++)];
  for (Item& item : b.scatter)
    if (item.statistics_of >= 0)
      item.tensor = memory_.at(memory_.tensors().all_statistics,
                               step * seat_.microbatches_of_step() + item.statistics_of);
  b.computed = device_.computed();
  b.scattered = exchange(transport, b.scatter);
}

void ReplicaSum::advance(Transport& transport) {
  if (!context_.backend().host_memory()) return;
  const auto there = [&](Transport::Ticket ticket) { return transport.arrived(ticket); };
  while (added_ < begun_ && std::ranges::all_of(buckets_[size_t(added_)].scattered, there))
    add_up(buckets_[size_t(added_++)], transport);
}

// The sum is ((g0 + g1) + g2) + …, wherever this replica's own term stands among them. What comes before it
// is gathered in the first term.
void ReplicaSum::add_up(Bucket& b, Transport& transport) {
  device_.beside(b.computed, [&] {
    for (const Transport::Ticket ticket : b.scattered) transport.wait(ticket);
    const Backend& backend = context_.backend();
    for (const auto& [own, terms] : b.parts)
      for (size_t i = 0; i < terms.size(); ++i) {
        const bool before = int(i) < seat_.replica;
        if (before && i > 0) backend.add(context_, terms[i], terms[0]);
        if (int(i) + 1 == seat_.replica) backend.add(context_, terms[0], own);
        if (!before) backend.add(context_, terms[i], own);
      }
    b.gathered = exchange(transport, b.gather);
  });
}

void ReplicaSum::finish(int bucket, Transport& transport) {
  ANTICHAIN_CHECK(bucket < begun_, "a bucket begins before it is needed");
  while (added_ <= bucket) add_up(buckets_[size_t(added_++)], transport);
  advance(transport);  // or the link would idle between one bucket's gather and the next one's
  device_.rejoin();
  for (const Transport::Ticket ticket : buckets_[size_t(bucket)].gathered) transport.wait(ticket);
  // The peers have what was sent from here, because the sums are made of it. But MPI may not have said so
  // yet, and until then the memory is its own. Messages in one order leave in it, too.
  if (const bool last = bucket + 1 == buckets(); !context_.backend().host_memory() || transport.ordered())
    store(buckets_[size_t(bucket)]);
  else if (last) {
    transport.flush();
    for (const Bucket& b : buckets_) store(b);
  }
}

void ReplicaSum::store(const Bucket& b) {
  for (const auto& [sum, place] : b.received) device_.copy(sum, place);
}

std::vector<Turn> ReplicaSum::turns(const std::vector<Item>& items) {
  std::vector<Turn> all;
  for (const Item& item : items) all.push_back(item.turn);
  return all;
}

}  // namespace antichain
