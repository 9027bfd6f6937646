// A CutScorer tells the makespan search what a way to cut and place is worth: a step time, or nothing where
// it is no plan.
//
// A search comes back to many cuts, and even more often to the same stages, so the scorer remembers both. A
// remembered result counts as spent like a new one, so remembering saves time and changes no plan.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "partition/search/bottleneck.h"
#include "partition/search/stage_fitter.h"
#include "pipeline/planning/step_estimate.h"
#include "pipeline/schedule/policy.h"

namespace antichain {

struct Score {
  // Where ranks have several stages, or where messages count (PlanOptions::beside_bytes), this is the memory
  // that they lack, summed over ranks. Only a cut with 0 is a plan, but a search may have to begin with
  // others.
  int64_t lacking_bytes = 0;
  double step_s = 0;  // to the picosecond: equal steps are not told apart by the order of their sums
  double slowest_s = 0;
  int64_t bytes = 0;
  // The strain is the sum of squares of StepEstimate::at_least_s. While the stages that make the step long
  // stay as they are, a search can still see whether it makes the others shorter.
  double strain = 0;

  // Less is better: first what is lacking, then the step, then the slowest stage, then the bytes sent.
  bool operator<(const Score& other) const {
    return std::tie(lacking_bytes, step_s, slowest_s, bytes) <
           std::tie(other.lacking_bytes, other.step_s, other.slowest_s, other.bytes);
  }
  bool eases(const Score& other) const {
    return std::tie(lacking_bytes, step_s, strain, slowest_s, bytes) <
           std::tie(other.lacking_bytes, other.step_s, other.strain, other.slowest_s, other.bytes);
  }
};

class CutScorer {
 public:
  // Keeps references to all. The options are those of the plan; the search may have been asked for one device
  // a stage (pipeline/planning/chunks.h).
  CutScorer(const Profile&, const PlanOptions&, const Policy&, const AntichainDag&, const PlacementDag&,
            const StageFitter&);

  // Returns nothing when a stage is empty, is barred on its device or does not fit one of its own, states are
  // not nested, or a replica has no micro-batch. Returns nothing as well when more than `lacking_bytes` are
  // lacking, or as many and the step is certainly longer than `limit_s`.
  std::optional<Score> operator()(const Cuts&, double limit_s = std::numeric_limits<double>::infinity(),
                                  int64_t lacking_bytes = std::numeric_limits<int64_t>::max());
  // From now on cuts are scored by this time in seconds instead of the policy's estimated step. One call of
  // it costs so much, in the unit of spent().
  using Seconds = std::function<double(const StageSums&, const Cuts&)>;
  void score_by(Seconds seconds, int64_t cost) {
    seconds_ = std::move(seconds), cost_ = cost;
    known_.clear();
  }
  // Returns what all calls cost, in a unit of a few nanoseconds. The number is the same on every machine.
  int64_t spent() const { return spent_; }
  // Says whether every stage so far recomputes what is certainly best, or certainly does not fit.
  bool exact() const { return exact_; }

  // Returns the memory of all devices that have a limit.
  int64_t memory_bytes() const;

  const AntichainDag& dag() const { return dag_; }
  const PlacementDag& placements() const { return placements_; }

 private:
  using Bits = std::vector<uint64_t>;
  const Bits& down_set(int state);
  const StagePart& part(int from_state, int to_state, const Move&);
  const StagePart& fitting(int from_state, int to_state, const Move&, int first_rank);
  const StageSums& add_up(const Cuts&);
  bool by_stage() const { return options_.chunks == 1 && options_.beside_bytes.empty(); }
  bool fits(const StageSums&, const Cuts&) const;
  int64_t beside_bytes(int rank) const;
  int64_t lacking_bytes(const StageSums&, const Cuts&) const;
  // A Known is a score, the largest bound that the step was known to keep before it was played through, and
  // what it cost to add up the cut.
  struct Known {
    Score score;
    double least_s = 0;
    int64_t adding = 0;
  };
  struct CutsHash {
    size_t operator()(const Cuts&) const;
  };
  bool possible(const Cuts&) const;
  std::optional<Known> judge(const Cuts&, double limit_s, int64_t lacking_bytes);
  bool estimate(Known&, const StageSums&, const Cuts&, double limit_s);
  Ranks ranks_of(const Cuts&) const;
  StepEstimate& estimate_of(const Cuts&);

  const Profile& profile_;
  const PlanOptions& options_;
  const Policy policy_;
  const AntichainDag& dag_;
  const PlacementDag& placements_;
  StageAdder add_;
  std::vector<Bits> down_sets_;  // per state, over profile nodes; empty until asked for
  // Parts are by the states at their ends, whether they are replicated, and the kind of device.
  std::unordered_map<int64_t, StagePart> parts_;
  // Those of stages that recompute what they have to, by the same states and the index of the move.
  std::map<std::pair<int64_t, int64_t>, StagePart> fitting_;
  const StageFitter& fitter_;
  bool exact_ = true;
  std::vector<const StagePart*> of_cuts_;  // of the cuts at hand
  std::map<std::vector<const Move*>, StepEstimate> estimates_;
  std::unordered_map<Cuts, Known, CutsHash> known_;
  Seconds seconds_;
  int64_t cost_ = 0;
  int64_t spent_ = 0;
};

}  // namespace antichain
