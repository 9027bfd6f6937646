// A DispatchSearch finds a cut and a dispatching rule together: a cut is worth the greedy order that the rule
// makes of it (pipeline/planning/greedy_order.h). Both change at random, by simulated annealing (Kirkpatrick,
// Gelatt and Vecchi, "Optimization by Simulated Annealing", Science 1983).
//
// One order for all cuts is a poor judge, because an order that is good for one cut is not for its
// neighbours. A rule is, and playing a step by it takes no longer than by a given order.
#pragma once

#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "pipeline/planning/cut_climb.h"
#include "pipeline/planning/greedy_order.h"

namespace antichain {

class DispatchSearch {
 public:
  using Times = std::function<PipelineTimes(const StageSums&, const Cuts&)>;
  struct Found {
    ScoredCuts at;
    RankOrders orders;
  };
  // Keeps references to the first two. `most_in_flight` is that of every rank, in micro-batches.
  DispatchSearch(CutScorer&, CutClimb&, Times, std::vector<int> most_in_flight, Steps);

  // Returns the best of a walk from these cuts, or nothing where ranks get stuck. What the scorer scores by
  // is another afterwards.
  std::optional<Found> anneal(const Cuts& start);

 private:
  void change_rule();
  void set_limits();

  CutScorer& score_;
  CutClimb& climb_;
  const Times times_;
  const std::vector<int> most_in_flight_;
  const Steps steps_;
  OrderEstimate estimate_{PipelineTimes()};
  InFlightLimits limits_;
  DispatchingRule rule_;
  GreedyOrder greedy_;
  std::mt19937_64 random_{1};
};

}  // namespace antichain
