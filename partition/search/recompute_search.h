// Which nodes should a stage compute again? This search finds the choice that takes least time of those that
// fit a limit of bytes, and the fewest bytes that any choice needs, both by the formula of
// partition/plan/working_set.h.
//
// It goes through the stage's order and keeps, for everything that later nodes can tell apart
// (recompute_state.h), the Pareto set of time, kept bytes and working sets. Bounds rule out most of it. They
// come from graphs in which states are one: at first those that differ by few bytes, and then those that are
// beaten at the best price of a byte. Where too many labels are left, the range of the largest working set is
// divided, or the graph tells more states apart, the most promising part first; at last each state has the
// front of all paths from it. Choosing what to keep on a chain by dynamic programming is due to Beaumont,
// Eyraud-Dubois, Herrmann, Joly, Shilova, "Optimal Checkpointing for Heterogeneous Chains", ACM Transactions
// on Mathematical Software 2024.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "partition/plan/working_set.h"
#include "partition/profile/cluster.h"

namespace antichain {

struct RecomputeChoice {
  std::vector<bool> again;  // by position in the stage
  WorkingSet set;
  int64_t ns = 0;     // of what is computed again
  int64_t bytes = 0;  // in flight x kept + again

  std::vector<int> of(const std::vector<int>& nodes) const;  // those that are recomputed
};

// A RecomputeFind is what a search came to.
struct RecomputeFind {
  std::optional<RecomputeChoice> choice;  // nothing where none was found that fits
  bool exact = true;                      // whether there is certainly no better one, or none
  int64_t labels = 0;                     // and states that the search made
};

struct RecomputeRequest {
  int in_flight = 1;           // micro-batches
  int64_t budget_bytes = 0;    // for RecomputeChoice::bytes
  double speed = 1;            // of the device
  int64_t effort = 8'000'000;  // labels and states, five seconds, after which a choice is not proved
};

// Looks for the choice that takes least time within the budget.
RecomputeFind least_time(const StageOrder&, const RecomputeRequest&);
// Looks for the choice that needs fewest bytes, whatever the budget. It always finds one.
RecomputeFind least_bytes(const StageOrder&, const RecomputeRequest&);

// A StageSeat is where a stage runs.
struct StageSeat {
  int in_flight = 1, replicas = 1;
  int64_t memory_bytes = 0;  // of each device; 0: unlimited
  double speed = 1;
  int profile = -1;  // as Device::profile
  auto operator<=>(const StageSeat&) const = default;
};

// A StageFitter answers the same questions for stages of one network and the memory of a device. All searches
// for one plan share one. It remembers what it found, and for each of the two questions all stages together
// get one effort, so that a search which tries many cuts ends. Only the whole network in one stage has that
// of a request.
class StageFitter {
 public:
  // Keeps a reference to the profile. `sharded` says whether replicas share out the optimiser's state, and
  // the cluster has the profiles that seats name.
  StageFitter(const Profile& profile, bool sharded, const Cluster& cluster = {})
      : profile_(profile), sharded_(sharded), kinds_(cluster.profiles), consumers_(profile.consumers()) {}

  // Returns what a stage has to recompute to fit: nothing, often. It holds until the next call.
  const RecomputeFind& fit(const std::vector<int>& nodes, const StageSeat&) const;

  struct Least {
    int64_t bytes = 0;
    bool exact = true;  // whether fewer are certainly not enough
  };
  // Returns the smallest memory of a device that is enough.
  Least least(const std::vector<int>& nodes, const StageSeat&) const;
  // Returns the part of it that no choice changes.
  int64_t other_bytes(const std::vector<int>& nodes, const StageSeat&) const;

 private:
  using Stage = std::pair<std::vector<int>, StageSeat>;
  RecomputeFind choose(const std::vector<int>& nodes, const StageSeat&) const;

  const Profile& profile_;
  const bool sharded_;
  const std::vector<KindProfile> kinds_;
  std::vector<std::vector<int>> consumers_;
  mutable std::map<Stage, RecomputeFind> known_;
  mutable std::map<Stage, Least> known_least_;
  mutable int64_t effort_ = 3'000'000, effort_for_least_ = 3'000'000;  // what is left of it
};

}  // namespace antichain
