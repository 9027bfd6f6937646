#include "pipeline/program/shards.h"

#include <algorithm>

#include "pipeline/schedule/gradient_buckets.h"
#include "pipeline/schedule/schedule_passes.h"

namespace antichain {
namespace {

class SharingOut {
 public:
  SharingOut(Shards& shards, bool state)
      : shards_(shards), state_(state), whole_bytes_(shards.ranks.size()), count_(shards.ranks.size()) {}

  // Begins a bucket, whose gradients lie there.
  void begin(int64_t begin_bytes) { run_ = {begin_bytes, 0}, for_all_ = !state_; }

  // `alike` says whether all stages that have the weight have equally many replicas.
  void add(const StepWeight& weight, bool alike) {
    const bool for_all = !state_ || !alike || (weight.shared && weight.whole);
    const bool alone = !for_all && (weight.whole || weight.shared);
    if (alone || for_all != for_all_) end_run();
    for_all_ = for_all;
    run_.bytes += weight.room_bytes;
    if (!alone) return;
    if (!weight.whole) return end_run();
    const auto least = std::ranges::min_element(whole_bytes_);
    *least += weight.room_bytes;
    add(run_, int(least - whole_bytes_.begin()), false);
    run_ = {run_.begin_bytes + run_.bytes, 0};
  }

  void end_bucket() {
    end_run();
    ++shards_.buckets;
  }

 private:
  void end_run() {
    for (int i = 0; i < int(shards_.ranks.size()); ++i) {
      const ByteRange part = equal_part(run_.bytes, i, int(shards_.ranks.size()));
      add({run_.begin_bytes + part.begin_bytes, part.bytes}, i, for_all_);
    }
    run_ = {run_.begin_bytes + run_.bytes, 0};
  }

  void add(const ByteRange& of, int owner, bool for_all) {
    const int number = count_[size_t(owner)]++;
    if (of.bytes > 0) shards_.all.push_back({of, shards_.buckets, owner, for_all, number});
  }

  Shards& shards_;
  const bool state_;
  std::vector<int64_t> whole_bytes_;  // by replica
  std::vector<int> count_;            // of shards, by replica
  ByteRange run_;
  bool for_all_ = true;
};

// Says whether all stages that have this weight of the node have so many replicas.
bool alike(const StepWeight& weight, int node, const Profile& profile, const Plan& plan, int replicas) {
  if (!weight.shared) return true;
  const auto& own = profile.nodes[size_t(node)].shared;
  const auto use = std::ranges::find(own, weight.param, &SharedUse::param);
  return use != own.end() && std::ranges::all_of(plan.stages, [&](const PlanStage& stage) {
           return int(stage.ranks.size()) == replicas || std::ranges::none_of(stage.nodes, [&](int n) {
                    const auto& others = profile.nodes[size_t(n)].shared;
                    return std::ranges::find(others, use->weight, &SharedUse::weight) != others.end();
                  });
         });
}

}  // namespace

bool Shards::of_state() const {
  return std::ranges::any_of(all, [](const Shard& shard) { return !shard.for_all; });
}

std::vector<Share> Shards::of_weight(const ByteRange& gradient) const {
  std::vector<Share> shares;
  const int64_t weight_end = gradient.begin_bytes + gradient.bytes;
  for (const Shard& shard : all) {
    const int64_t begin = std::max(shard.of.begin_bytes, gradient.begin_bytes),
                  end = std::min(shard.of.begin_bytes + shard.of.bytes, weight_end);
    if (!shard.for_all && begin < end)
      shares.push_back({shard.owner, {begin - gradient.begin_bytes, end - begin}});
  }
  return shares;
}

int64_t Shards::most_bytes(int bucket) const {
  std::vector<int64_t> bytes(ranks.size());
  for (const Shard& shard : all)
    if (shard.bucket == bucket) bytes[size_t(shard.owner)] += shard.of.bytes;
  return bytes.empty() ? 0 : std::ranges::max(bytes);
}

Shards shards_of(const StepNetwork& network, const Profile& profile, const Plan& plan,
                 const std::vector<Action>& of_rank, const Seat& seat) {
  Shards shards;
  if (seat.replicas == 1) return shards;
  const PlanStage& stage = plan.stages[size_t(seat.stage)];
  shards.ranks = stage.ranks, shards.own = seat.replica;
  std::vector<int64_t> begins(1);  // of the nodes' gradients
  for (const int node : stage.nodes) {
    begins.push_back(begins.back());
    for (const StepWeight& weight : network[size_t(node)].weights) begins.back() += weight.room_bytes;
  }
  SharingOut out(shards, plan.shard_optimiser);
  size_t end = stage.nodes.size();
  for (const GradientBucket& bucket :
       gradient_buckets(profile, stage.nodes, std::max(1, buckets_in(of_rank, seat.stage)))) {
    out.begin(begins[size_t(bucket.first)]);
    for (size_t i = size_t(bucket.first); i < end; ++i)
      for (const StepWeight& weight : network[size_t(stage.nodes[i])].weights)
        out.add(weight, alike(weight, stage.nodes[i], profile, plan, seat.replicas));
    out.end_bucket();
    end = size_t(bucket.first);
  }
  return shards;
}

Shards shards_of(const Graph& graph, const Optimiser& optimiser, const Profile& profile, const Plan& plan,
                 const Schedule& schedule, int rank) {
  const RankSeats seats = seats_of(plan, rank, schedule.microbatches);
  if (seats.size() > 1) return {};
  return shards_of(step_network(graph, optimiser), profile, plan, schedule.ranks[size_t(rank)],
                   seats.front());
}

}  // namespace antichain
