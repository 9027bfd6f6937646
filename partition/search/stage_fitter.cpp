#include "partition/search/stage_fitter.h"

#include <algorithm>

#include "partition/plan/stage_cost.h"

namespace antichain {
namespace {

constexpr size_t most_known = 20'000;  // stages

}  // namespace

int64_t StageFitter::other_bytes(const std::vector<int>& nodes, const StageSeat& seat) const {
  StageSum sum = sum_of(profile_, nodes);
  sum.kept_bytes = 0;
  return memory_bytes(sum, seat.in_flight, seat.replicas, sharded_);
}

const RecomputeFind& StageFitter::fit(const std::vector<int>& nodes, const StageSeat& seat) const {
  if (known_.size() > most_known) known_.clear();
  const auto [known, fresh] = known_.try_emplace({nodes, seat});
  if (fresh) known->second = choose(nodes, seat);
  return known->second;
}

RecomputeFind StageFitter::choose(const std::vector<int>& nodes, const StageSeat& seat) const {
  const StageSum sum = sum_of(profile_, nodes);
  if (seat.memory_bytes == 0 ||
      memory_bytes(sum, seat.in_flight, seat.replicas, sharded_) <= seat.memory_bytes)
    return {RecomputeChoice{.again = std::vector<bool>(nodes.size()), .set = {.kept_bytes = sum.kept_bytes}}};
  const int64_t budget = seat.memory_bytes - other_bytes(nodes, seat);
  if (budget < 0) return {};
  StageOrder order(profile_, consumers_, nodes);
  if (seat.profile >= 0)
    for (size_t i = 0; i < nodes.size(); ++i)
      order.places[i].forward_s =
          kinds_[size_t(seat.profile)].profile->nodes[size_t(nodes[i])].cost.forward_s;
  RecomputeRequest request{.in_flight = seat.in_flight, .budget_bytes = budget, .speed = seat.speed};
  const auto computes = [](const ProfileNode& node) { return node.role != Role::input; };
  if (std::ranges::count_if(profile_.nodes, computes) == int64_t(nodes.size()))
    return least_time(order, request);
  request.effort = effort_;
  RecomputeFind found = least_time(order, request);
  effort_ = std::max<int64_t>(0, effort_ - found.labels);
  return found;
}

StageFitter::Least StageFitter::least(const std::vector<int>& nodes, const StageSeat& seat) const {
  if (known_least_.size() > most_known) known_least_.clear();
  const auto [known, fresh] =
      known_least_.try_emplace({nodes, {.in_flight = seat.in_flight, .replicas = seat.replicas}});
  if (fresh) {
    const RecomputeFind found = least_bytes(StageOrder(profile_, consumers_, nodes),
                                            {.in_flight = seat.in_flight, .effort = effort_for_least_});
    effort_for_least_ = std::max<int64_t>(0, effort_for_least_ - found.labels);
    known->second = {other_bytes(nodes, seat) + found.choice->bytes, found.exact};
  }
  return known->second;
}

}  // namespace antichain
