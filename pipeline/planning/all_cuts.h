// This search goes through all cuts of a small network except those that can't be better, on devices in one
// order. Where it ends within its budget, it is a proof for this order.
//
// A stage that begins at the down-set E and does w of work a micro-batch, M times, also waits. Whatever it
// holds, it holds some node that could be the next after E. That node's longest way from a source through E
// has to be gone before the stage's first forward, and the way back after its last backward:
//
//   step  ≥  M w + head(E),   head(E) = the shortest such wait, over the nodes that can be next
//
// The wait is that of nodes which are all where they are fastest. This holds where backwards are whole. A
// weight half (W) may come while the gradient is on its way, so nothing is proved for schedules that have
// any. The bound depends on a stage's two ends and its device alone. So dynamic programming finds the least
// that the stages after a boundary make of a step. That is a bound for all plans, and it rules out most cuts
// before they have all their boundaries.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/planning/cut_climb.h"
#include "pipeline/planning/makespan_bound.h"

namespace antichain {

class AllCuts {
 public:
  static constexpr int most_states = 1000;  // of the DAG
  // The path has one device a stage. `whole` says whether the DAG has all down-sets.
  AllCuts(const Profile&, const PlanOptions&, const AntichainDag&, bool whole, std::vector<const Move*> path);

  // No such plan has a shorter step than this.
  double least_step_s() const;
  // Replaces `best` where there is a better one. Returns true when nothing is left out. A search that is
  // still at its beginning after a part of the budget gives up there.
  bool search(CutScorer&, ScoredCuts& best, int64_t budget) const;

 private:
  void add_works(const Move&);
  void find_heads();
  double wait_s(const LongestWays&, const ProfileNode&) const;
  void find_rests();
  double stage_s(int stage, int from, int to) const;
  bool may_follow(int boundary, int from, int to, double step_s) const;
  double share_searched(const ScoredCuts& best, const std::vector<int>& states) const;
  double& rest_s(int stages, int state) {
    return rest_s_[size_t(stages) * size_t(dag_.states()) + size_t(state)];
  }
  double rest_s(int stages, int state) const {
    return rest_s_[size_t(stages) * size_t(dag_.states()) + size_t(state)];
  }

  const Profile& profile_;
  const PlanOptions& options_;
  const AntichainDag& dag_;
  const std::vector<const Move*> path_;
  const int stages_;
  const bool whole_;
  const Profile least_;  // times of nodes, where each is fastest
  // Per stage: the overhead of an action, and per state the work of its down-set, updates included.
  std::vector<double> overhead_s_;
  std::vector<std::vector<double>> work_s_;
  std::vector<double> head_s_;  // per state
  // The table is stages x states. It has the least that so many stages from this state on make of a step.
  std::vector<double> rest_s_;
};

}  // namespace antichain
