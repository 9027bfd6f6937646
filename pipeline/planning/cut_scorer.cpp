#include "pipeline/planning/cut_scorer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "pipeline/planning/chunks.h"

namespace antichain {
namespace {

constexpr size_t most_estimates = 500;  // one per path through the placements; they are large
// Steps are rounded to picoseconds, and differ from bounds in their last bits.
constexpr double step_rounding = 1e-11;

int64_t memory_of(const StageSum& stage, const Move& move) {
  const MemoryParts bytes{.held = stage.held_bytes, .kept = stage.kept_bytes, .weights = stage.param_bytes};
  return memory_bytes(bytes, move.in_flight, move.replicas);
}

}  // namespace

CutScorer::CutScorer(const Profile& profile, const PlanOptions& options, const Policy& policy,
                     const AntichainDag& dag, const PlacementDag& placements)
    : profile_(profile),
      options_(options),
      policy_(policy),
      dag_(dag),
      placements_(placements),
      add_(profile),
      down_sets_(size_t(dag.states())),
      stage_of_(profile.nodes.size(), -1) {}

const CutScorer::Bits& CutScorer::down_set(int state) {
  Bits& bits = down_sets_[size_t(state)];
  if (bits.empty()) {
    bits.assign(profile_.nodes.size() / 64 + 1, 0);
    for (int n : dag_.down_set(state)) bits[size_t(n) / 64] |= uint64_t(1) << (n % 64);
  }
  return bits;
}

// Stage s has what states[s + 1] has beyond states[s].
void CutScorer::find_stages(const Cuts& cuts) {
  for (size_t s = 0; s + 1 < cuts.states.size(); ++s) {
    const Bits &before = down_set(cuts.states[s]), &after = down_set(cuts.states[s + 1]);
    for (size_t w = 0; w < after.size(); ++w)
      for (uint64_t added = after[w] & ~before[w]; added != 0; added &= added - 1)
        stage_of_[w * 64 + size_t(std::countr_zero(added))] = int(s);
  }
}

bool CutScorer::fits(const StageSums& sums, const Cuts& cuts) const {
  for (size_t s = 0; s < cuts.moves.size(); ++s)
    if (const int64_t limit = cuts.moves[s]->memory_bytes;
        limit > 0 && memory_of(sums.stages[s], *cuts.moves[s]) > limit)
      return false;
  return true;
}

int64_t CutScorer::memory_bytes() const {
  int64_t bytes = 0;
  for (const Device& device : options_.cluster.devices) bytes += device.memory_bytes;
  return bytes;
}

// The limit is one of all stages of a rank.
int64_t CutScorer::lacking_bytes(const StageSums& sums, const Cuts& cuts) const {
  if (options_.chunks == 1 || options_.cluster.devices.empty()) return 0;
  const Ranks ranks = ranks_of(cuts);
  std::vector<int64_t> needed(ranks.device.size(), 0);
  for (size_t s = 0; s < cuts.moves.size(); ++s)
    needed[size_t(ranks.of_stage[s].front())] += memory_of(sums.stages[s], *cuts.moves[s]);
  int64_t lacking = 0;
  for (size_t r = 0; r < needed.size(); ++r)
    if (const int64_t limit = options_.cluster.device(ranks.device[r]).memory_bytes; limit > 0)
      lacking += std::max<int64_t>(0, needed[r] - limit);
  return lacking;
}

// Where each rank has one stage, ranks are numbered stage by stage.
Ranks CutScorer::ranks_of(const Cuts& cuts) const {
  if (options_.chunks > 1) return ranks_of_stages(options_, policy_, int(cuts.moves.size()));
  Ranks ranks;
  for (const std::vector<int>& crew : placements_.devices(cuts.moves)) {
    ranks.of_stage.emplace_back(crew.size());
    std::iota(ranks.of_stage.back().begin(), ranks.of_stage.back().end(), int(ranks.device.size()));
    ranks.device.insert(ranks.device.end(), crew.begin(), crew.end());
  }
  return ranks;
}

StepEstimate& CutScorer::estimate_of(const Cuts& cuts) {
  std::vector<int> key;
  for (const Move* move : cuts.moves) key.push_back(int(move - placements_.moves().data()));
  const auto found = estimates_.find(key);
  if (found != estimates_.end()) return found->second;
  if (estimates_.size() >= most_estimates) estimates_.clear();
  StepEstimate estimate(policy_, options_.microbatches, options_.cluster, ranks_of(cuts),
                        profile_.overhead_s);
  spent_ += 40 * estimate.actions();
  return estimates_.emplace(std::move(key), std::move(estimate)).first->second;
}

// Returns false where the step is certainly longer than the limit.
bool CutScorer::estimate(Score& score, const StageSums& sums, const Cuts& cuts, double limit_s) {
  StepEstimate& estimate = estimate_of(cuts);
  estimate.set(sums);
  for (double s : estimate.at_least_s()) {
    if (s > limit_s * (1 + step_rounding)) return false;
    score.strain += s * s;
  }
  spent_ += 4 * estimate.actions();
  score.step_s = std::round(estimate.step_s() * 1e12) / 1e12;
  return true;
}

std::optional<Score> CutScorer::operator()(const Cuts& cuts, double limit_s, int64_t lacking_bytes) {
  spent_ += 50;
  const std::vector<int>& states = cuts.states;
  for (size_t s = 0; s + 1 < states.size(); ++s)
    if (states[s] == states[s + 1] || !dag_.inside(states[s], states[s + 1])) return std::nullopt;
  for (const Move* move : cuts.moves)
    if (move->replicas > options_.microbatches) return std::nullopt;
  find_stages(cuts);
  std::vector<bool> replicated;
  for (const Move* move : cuts.moves) replicated.push_back(move->replicas > 1);
  const StageSums& sums = add_(stage_of_, int(cuts.moves.size()), replicated);
  if (!fits(sums, cuts)) return std::nullopt;
  spent_ += int64_t(profile_.nodes.size());
  Score score{.lacking_bytes = this->lacking_bytes(sums, cuts), .bytes = sums.bytes()};
  if (score.lacking_bytes > lacking_bytes) return std::nullopt;
  if (score.lacking_bytes < lacking_bytes) limit_s = std::numeric_limits<double>::infinity();
  if (seconds_) {
    spent_ += cost_;
    score.step_s = std::round(seconds_(sums, cuts) * 1e12) / 1e12;
    for (const StageSum& stage : sums.stages) {
      const double stage_s = stage.forward_s + stage.backward_s;
      score.strain += stage_s * stage_s;
    }
  } else if (!estimate(score, sums, cuts, limit_s)) {
    return std::nullopt;
  }
  for (size_t s = 0; s < cuts.moves.size(); ++s)
    score.slowest_s = std::max(score.slowest_s, (sums.stages[s].forward_s + sums.stages[s].backward_s) /
                                                    (cuts.moves[s]->speed * cuts.moves[s]->replicas));
  return score;
}

}  // namespace antichain
