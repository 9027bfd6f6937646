// A StageFitter says what a stage has to recompute to fit its device, and which is the smallest memory that
// it fits, for all stages that the searches for one plan try. recompute_search.h answers for one stage.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "partition/profile/cluster.h"
#include "partition/search/recompute_search.h"

namespace antichain {

// A StageSeat is where a stage runs.
struct StageSeat {
  int in_flight = 1, replicas = 1;
  int64_t memory_bytes = 0;  // of each device; 0: unlimited
  double speed = 1;
  int profile = -1;  // as Device::profile
  auto operator<=>(const StageSeat&) const = default;
};

// All searches for one plan share a StageFitter. It remembers what it found, and for each of the two
// questions all stages together get one effort, so that a search which tries many cuts ends. Only the whole
// network in one stage has that of a RecomputeRequest.
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
