#include "pipeline/planning/dispatch_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace antichain {
namespace {

// Steps that are played: so many for each action of a step, and so many actions in all.
constexpr int64_t plays_of_an_action = 500, most_played = 75'000'000;
constexpr double hottest = 0.01, coldest = 2e-4;  // shares of a step that a change may lose
constexpr uint64_t most_shifted = 3;              // neighbouring boundaries
constexpr int patience_levels = 6;
constexpr double patience_step = 0.25;
constexpr double stuck_s = 1e9;

}  // namespace

DispatchSearch::DispatchSearch(CutScorer& score, CutClimb& climb, Times times,
                               std::vector<int> most_in_flight, Steps steps)
    : score_(score),
      climb_(climb),
      times_(std::move(times)),
      most_in_flight_(std::move(most_in_flight)),
      steps_(steps) {}

void DispatchSearch::set_limits() {
  limits_.takes.assign(size_t(estimate_.stages()), 1);
  limits_.most.assign(size_t(estimate_.ranks()), 0);
  limits_.of_each_stage.assign(size_t(estimate_.ranks()), false);
  for (int s = 0; s < estimate_.stages(); ++s) {
    const size_t rank = size_t(estimate_.rank_of(s));
    limits_.most[rank] += most_in_flight_[rank];
  }
}

// Exchanges two turns, or has a rank more patience or less.
void DispatchSearch::change_rule() {
  if (random_() % 2 == 0) {
    rule_.patience[random_() % rule_.patience.size()] = patience_step * double(random_() % patience_levels);
    return;
  }
  const auto turn = [&]() -> int& {
    std::vector<int>& turns = random_() % 2 == 0 ? rule_.forward_turn : rule_.input_turn;
    return turns[random_() % turns.size()];
  };
  std::swap(turn(), turn());
}

std::optional<DispatchSearch::Found> DispatchSearch::anneal(const Cuts& start) {
  score_.score_by(
      [this](const StageSums& sums, const Cuts& cuts) {
        estimate_.set(times_(sums, cuts));
        if (limits_.takes.empty()) set_limits(), rule_ = even_rule(estimate_, true, 0);
        return greedy_.play(estimate_, limits_, rule_) ? greedy_.seconds(steps_) : stuck_s;
      },
      /*cost=*/1);
  const std::optional<Score> first = score_(start);
  if (!first || first->step_s >= stuck_s) return std::nullopt;
  ScoredCuts now{start, *first};
  Found best{now, greedy_.orders()};
  const int64_t actions = 3 * int64_t(estimate_.stages()) * estimate_.microbatches();
  const int64_t plays = std::min(plays_of_an_action * actions, most_played / actions);
  std::uniform_real_distribution<double> unit(0, 1);
  for (int64_t play = 0; play < plays; ++play) {
    const double heat_s =
        now.score.step_s * hottest * std::pow(coldest / hottest, double(play) / double(plays));
    Cuts cuts = now.cuts;
    const DispatchingRule before = rule_;
    const auto kind = random_() % 8;
    if (kind < 3)
      change_rule();
    else
      climb_.shift(cuts, 1 + (kind == 7 ? random_() % most_shifted : 0));
    const std::optional<Score> score = score_(cuts);
    const bool taken = score && score->lacking_bytes <= now.score.lacking_bytes &&
                       (score->step_s <= now.score.step_s || score->lacking_bytes < now.score.lacking_bytes ||
                        unit(random_) < std::exp((now.score.step_s - score->step_s) / heat_s));
    if (!taken) {
      rule_ = before;
      continue;
    }
    now = {std::move(cuts), *score};
    if (now.score < best.at.score) best = {now, greedy_.orders()};
  }
  return best;
}

}  // namespace antichain
