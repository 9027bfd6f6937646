// This is the search of the exact planner. It goes over all antichains and all placements where they are few
// enough. Otherwise it goes over some of them, and a bound says how much may be missed.
//
//   CutGraph ─▶ chain cover ─▶ antichain DAG ─┐
//   Cluster  ─────────────▶ placements ───────┴─▶ smallest bottleneck ─▶ tie rule ─▶ Plan
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "framework/error.h"
#include "partition/plan/finish_plan.h"
#include "partition/search/choose_cuts.h"
#include "partition/search/recomputing_cuts.h"

namespace antichain {

// A Solution is one way to cut and place. `dag` and `placements` outlive it in the search that it comes from.
struct Solution {
  const AntichainDag* dag = nullptr;
  const PlacementDag* placements = nullptr;
  Cuts cuts;
  int64_t bottleneck_ns = 0;
};

// This is the smallest memory of each device with which a plan was found.
struct LeastMemory {
  int64_t bytes = 0;  // 0: none was
  bool exact = true;  // whether no plan needs less
};
// Returns the refusal that names it.
Error does_not_fit(const Profile&, const PlanOptions&, const LeastMemory&);

class AntichainSearch {
 public:
  // Keeps references to all. Throws Error as check() says. The fitter is that of other searches for the same
  // plan, even where updates are priced otherwise; without one the search makes its own.
  AntichainSearch(const Profile&, const PlanOptions&, const StageFitter* = nullptr);

  // Returns the smallest bottleneck, with the plan that the tie rule chooses. Throws Error, with the smallest
  // memory that would do, when no plan fits the devices.
  Solution best();
  // Returns the tie rule's choice among the plans whose bottleneck is at most `slack` (a share) above the
  // smallest, on the same devices as `best`.
  Solution near(const Solution& best, TieRule, double slack) const;

  // Returns the smallest memory whatever the limits are.
  LeastMemory least_memory() { return search_memory().least; }

  Plan plan_of(const Solution&) const;
  // No plan has a smaller bottleneck than this. It is best()'s, where that is proved.
  int64_t lower_bound_ns() const { return lower_bound_ns_; }
  // Returns the lattice of all down-sets, or nullptr where there are too many.
  const AntichainDag* whole() const { return whole_.get(); }
  // Says whether a solution's lattice has all down-sets.
  bool is_whole(const AntichainDag& dag) const { return whole_ && dag.states() == whole_->states(); }
  // Returns how many nodes there are to cut apart: those that sit together are one.
  int nodes() const { return graph_.size(); }
  const StageFitter& fitter() const { return fitter_; }

 private:
  using Placements = std::vector<const PlacementDag*>;

  void list_lattices();
  const AntichainDag* contracted();
  Placements placements(int devices, bool& all);
  void add_orders(Placements&, int devices);
  // An Outcome is what a search for a bottleneck of at most `below_ns` came to.
  struct Outcome {
    std::optional<Solution> solution;
    int64_t lower_bound_ns = 0;  // nothing that was searched is better than this
    bool exhaustive = true;      // whether nothing was left out
  };
  Outcome solve(int devices, int64_t below_ns);
  std::optional<Outcome> solve_by_kind(int devices, int64_t& low, int64_t below);
  Outcome solve_parts(const Placements&, int64_t low_ns, int64_t below_ns, bool on_whole);
  Outcome search(const AntichainDag&, const PlacementDag&, int64_t low_ns, int64_t below_ns);
  Outcome search_within_memory(const AntichainDag&, const PlacementDag&, int64_t low_ns,
                               int64_t below_ns) const;
  Outcome search_loads(const AntichainDag&, const PlacementDag&, int64_t low_ns, int64_t below_ns);
  // Says whether one search is of all numbers of devices.
  bool fewer_at_once() const;
  Outcome search_recomputing(const AntichainDag&, const PlacementDag&, int64_t low_ns,
                             int64_t below_ns) const;
  // Makes a stage recompute what it has to, so as to fit. Returns how long that takes, or nothing where it
  // does not fit.
  std::optional<int64_t> fit(PlanStage&, const Move&) const;
  int64_t attained_by_parts(const PlacementDag&, int64_t low_ns, int64_t high_ns);
  TieRule tie_rule() const;
  bool fits_memory(const Cuts&, const AntichainDag&, const PlacementDag&) const;
  struct Emptiest {
    LeastMemory least;
    std::optional<Solution> fitting;  // where one fits the limits
  };
  Emptiest search_memory();
  Solution fitting();
  std::vector<int> device_counts() const;
  void refuse_bars(int64_t bottleneck_ns) const;

  const Profile& profile_;
  const PlanOptions& options_;
  const CutGraph graph_;
  const bool limited_;                                   // whether some device's memory is
  const std::shared_ptr<const StageFitter> own_fitter_;  // where none was given
  const StageFitter& fitter_;
  std::vector<std::unique_ptr<AntichainDag>> sequences_;  // one per topological order
  // These are lattices coarser than the whole one, by the share of a stage that is merged.
  std::map<int64_t, std::unique_ptr<AntichainDag>> coarser_;
  std::unique_ptr<AntichainDag> whole_, contracted_;  // null where there are too many states
  bool tried_to_contract_ = false;
  std::vector<std::unique_ptr<PlacementDag>> kept_placements_;
  int64_t lower_bound_ns_ = 0;
};

}  // namespace antichain
