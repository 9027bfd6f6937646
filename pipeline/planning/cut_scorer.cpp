#include "pipeline/planning/cut_scorer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "partition/search/recomputing_cuts.h"
#include "pipeline/planning/chunks.h"
#include "pipeline/planning/memory_fit.h"

namespace antichain {
namespace {

constexpr size_t most_estimates = 500;   // one per path through the placements; they are large
constexpr size_t most_parts = 20'000;    // but for those of one cut
constexpr size_t most_known = 50'000;    // scores
constexpr int64_t price_of_a_fit = 500;  // for each node of the stage
// Steps are rounded to picoseconds, and differ from bounds in their last bits.
constexpr double step_rounding = 1e-11;

int64_t memory_of(const StageSum& stage, const Move& move, const PlanOptions& options) {
  return memory_bytes(stage, move.in_flight, move.replicas, options.shard_optimiser);
}

}  // namespace

CutScorer::CutScorer(const Profile& profile, const PlanOptions& options, const Policy& policy,
                     const AntichainDag& dag, const PlacementDag& placements, const StageFitter& fitter)
    : profile_(profile),
      options_(options),
      policy_(policy),
      dag_(dag),
      placements_(placements),
      add_(profile),
      down_sets_(size_t(dag.states())),
      fitter_(fitter) {}

const CutScorer::Bits& CutScorer::down_set(int state) {
  Bits& bits = down_sets_[size_t(state)];
  if (bits.empty()) {
    bits.assign(profile_.nodes.size() / 64 + 1, 0);
    for (int n : dag_.down_set(state)) bits[size_t(n) / 64] |= uint64_t(1) << (n % 64);
  }
  return bits;
}

// A stage has what one state has beyond the other.
const StagePart& CutScorer::part(int from_state, int to_state, const Move& move) {
  const Cluster& cluster = options_.cluster;
  const bool replicated = move.replicas > 1;
  int64_t key = (int64_t(from_state) * dag_.states() + to_state) * 2 + replicated;
  key = key * int64_t(cluster.profiles.size() + 1) + move.profile + 1;
  const auto found = parts_.find(key);
  if (found != parts_.end()) return found->second;
  const Bits &before = down_set(from_state), &after = down_set(to_state);
  std::vector<int> nodes;
  for (size_t w = 0; w < after.size(); ++w)
    for (uint64_t added = after[w] & ~before[w]; added != 0; added &= added - 1)
      nodes.push_back(int(w * 64) + std::countr_zero(added));
  const Profile& times = cluster.profile(move.profile, profile_);
  return parts_.emplace(key, add_.part(std::move(nodes), replicated, times)).first->second;
}

int64_t CutScorer::beside_bytes(int rank) const {
  return size_t(rank) < options_.beside_bytes.size() ? options_.beside_bytes[size_t(rank)] : 0;
}

// A stage that does not fit recomputes what takes least time, if that makes it fit.
const StagePart& CutScorer::fitting(int from_state, int to_state, const Move& move, int first_rank) {
  const StagePart& whole = part(from_state, to_state, move);
  if (!options_.recompute || move.memory_bytes == 0) return whole;
  StageSeat seat = seat_of(move);
  if (!by_stage()) {  // what crosses here is what neighbours exchange, or a little more
    const int64_t before = dag_.crossing_bytes(from_state), after = dag_.crossing_bytes(to_state);
    const int64_t messages =
        message_bytes({{0, 1, 1, 1, before, before}, {1, 2, 1, 1, after, after}}, {{-1}, {first_rank}, {-2}},
                      {0, move.in_flight, 0}, options_.microbatches)[1];
    seat.memory_bytes = std::max<int64_t>(1, seat.memory_bytes - messages - beside_bytes(first_rank));
  }
  if (memory_of(whole.sum, move, options_) <= seat.memory_bytes) return whole;
  const auto [known, fresh] = fitting_.try_emplace(
      {int64_t(from_state) * dag_.states() + to_state, &move - placements_.moves().data()}, whole);
  if (!fresh) return known->second;
  spent_ += price_of_a_fit * int64_t(whole.nodes.size());
  const RecomputeFind& found = fitter_.fit(whole.nodes, seat);
  if (found.choice) add_recomputed(known->second.sum, found.choice->set);
  exact_ &= found.exact;
  return known->second;
}

const StageSums& CutScorer::add_up(const Cuts& cuts) {
  if (parts_.size() > most_parts) parts_.clear();
  if (fitting_.size() > most_parts) fitting_.clear();
  of_cuts_.clear();
  int rank = 0;
  for (size_t s = 0; s < cuts.moves.size(); rank += cuts.moves[s++]->replicas)
    of_cuts_.push_back(&fitting(cuts.states[s], cuts.states[s + 1], *cuts.moves[s], rank));
  return add_(of_cuts_);
}

bool CutScorer::fits(const StageSums& sums, const Cuts& cuts) const {
  if (std::ranges::any_of(sums.stages, &StageSum::barred)) return false;
  if (!by_stage()) return true;
  for (size_t s = 0; s < cuts.moves.size(); ++s)
    if (const int64_t limit = cuts.moves[s]->memory_bytes;
        limit > 0 && memory_of(sums.stages[s], *cuts.moves[s], options_) > limit)
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
  if (by_stage() || options_.cluster.devices.empty()) return 0;
  const Ranks ranks = ranks_of(cuts);
  std::vector<int64_t> needed(ranks.device.size(), 0), messages(cuts.moves.size(), 0);
  if (!options_.beside_bytes.empty()) {
    std::vector<int> in_flight;
    for (const Move* move : cuts.moves) in_flight.push_back(move->in_flight);
    messages = message_bytes(sums.traffic, ranks.of_stage, in_flight, options_.microbatches);
  }
  for (size_t s = 0; s < cuts.moves.size(); ++s)
    for (const int rank : ranks.of_stage[s])
      needed[size_t(rank)] += memory_of(sums.stages[s], *cuts.moves[s], options_) + messages[s];
  for (size_t r = 0; r < needed.size(); ++r) needed[r] += beside_bytes(int(r));
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
  const auto found = estimates_.find(cuts.moves);
  if (found != estimates_.end()) return found->second;
  if (estimates_.size() >= most_estimates) estimates_.clear();
  StepEstimate estimate(policy_, options_.microbatches, options_.cluster, ranks_of(cuts),
                        options_.shard_optimiser);
  spent_ += 40 * estimate.actions();
  return estimates_.emplace(cuts.moves, std::move(estimate)).first->second;
}

// Returns false where the step is certainly longer than the limit.
bool CutScorer::estimate(Known& known, const StageSums& sums, const Cuts& cuts, double limit_s) {
  StepEstimate& estimate = estimate_of(cuts);
  estimate.set(sums);
  for (double s : estimate.at_least_s()) {
    known.least_s = std::max(known.least_s, s);
    known.score.strain += s * s;
  }
  if (known.least_s > limit_s * (1 + step_rounding)) return false;
  spent_ += 4 * estimate.actions();
  known.score.step_s = std::round(estimate.step_s() * 1e12) / 1e12;
  return true;
}

bool CutScorer::possible(const Cuts& cuts) const {
  const std::vector<int>& states = cuts.states;
  for (size_t s = 0; s + 1 < states.size(); ++s)
    if (states[s] == states[s + 1] || !dag_.inside(states[s], states[s + 1])) return false;
  return std::ranges::all_of(cuts.moves, [&](const Move* m) { return m->replicas <= options_.microbatches; });
}

std::optional<CutScorer::Known> CutScorer::judge(const Cuts& cuts, double limit_s, int64_t lacking_bytes) {
  const StageSums& sums = add_up(cuts);
  if (!fits(sums, cuts)) return std::nullopt;
  Known known{.score = {.lacking_bytes = this->lacking_bytes(sums, cuts), .bytes = sums.bytes()},
              .adding = std::max(int64_t(profile_.nodes.size()), add_.looked_at())};
  spent_ += known.adding;
  Score& score = known.score;
  if (score.lacking_bytes > lacking_bytes) return std::nullopt;
  if (score.lacking_bytes < lacking_bytes) limit_s = std::numeric_limits<double>::infinity();
  if (seconds_) {
    spent_ += cost_;
    score.step_s = std::round(seconds_(sums, cuts) * 1e12) / 1e12;
    std::map<int, double> load_s;  // by rank
    const Ranks ranks = ranks_of(cuts);
    for (size_t s = 0; s < sums.stages.size(); ++s)
      load_s[ranks.of_stage[s].front()] += sums.stages[s].forward_s + sums.stages[s].backward_s;
    for (const auto& [rank, s] : load_s) score.strain += s * s;
  } else if (!estimate(known, sums, cuts, limit_s)) {
    return std::nullopt;
  }
  for (size_t s = 0; s < cuts.moves.size(); ++s)
    score.slowest_s = std::max(score.slowest_s, (sums.stages[s].forward_s + sums.stages[s].backward_s) /
                                                    (cuts.moves[s]->speed * cuts.moves[s]->replicas));
  return known;
}

std::optional<Score> CutScorer::operator()(const Cuts& cuts, double limit_s, int64_t lacking_bytes) {
  spent_ += 50;
  if (!possible(cuts)) return std::nullopt;
  if (const auto found = known_.find(cuts); found != known_.end()) {
    const auto& [score, least_s, adding] = found->second;
    spent_ += adding;
    if (score.lacking_bytes > lacking_bytes) return std::nullopt;
    const int actions = estimate_of(cuts).actions();
    if (score.lacking_bytes == lacking_bytes && least_s > limit_s * (1 + step_rounding)) return std::nullopt;
    spent_ += 4 * actions;
    return score;
  }
  const std::optional<Known> known = judge(cuts, limit_s, lacking_bytes);
  if (!known) return std::nullopt;
  if (!seconds_) {
    if (known_.size() >= most_known) known_.clear();
    known_.emplace(cuts, *known);
  }
  return known->score;
}

size_t CutScorer::CutsHash::operator()(const Cuts& cuts) const {
  uint64_t hash = 0;
  const auto mix = [&](int value) { hash = (std::rotl(hash, 5) ^ uint64_t(value)) * 0x9e3779b97f4a7c15; };
  for (int state : cuts.states) mix(state);
  for (const Move* move : cuts.moves) mix(move->to);
  return hash;
}

}  // namespace antichain
