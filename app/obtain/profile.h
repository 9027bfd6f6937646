// A command obtains the profile of its network here: from a file, from the cache, or by measuring.
#pragma once

#include "app/job/job.h"
#include "app/obtain/given_files.h"
#include "app/options/options.h"
#include "partition/profile/profile.h"
#include "pipeline/transport/choose_transport.h"

namespace antichain {

// Returns the given profile. Throws a usage Error where --backward-split is given, too, and the profile has
// the halves' own times.
Profile read_profile(const GivenFiles&, const PlanningOptions&);
// Does the same. Throws Error when it is for another network than `lowered`, or of a kind that
// can't be executed.
Profile given_profile(const GivenFiles&, const PlanningOptions&, const Graph& lowered);
// Collective. Returns the given profile, else one measured before (app/obtain/profile_cache.h; rank 0 says so
// in one line), else one that is measured under the load of this job, and kept. The link is measured over the
// transport chosen for tensors. Rank 0 says so where the given profile's link was measured over another one.
Profile obtain_profile(const GivenFiles&, const PlanningOptions&, const NetworkOptions&, const Graph& lowered,
                       const std::shared_ptr<const Optimiser>&, Rank&, const ChosenTransport&);
// Collective. Measures a profile now. It is kept unless ranks lacked cores meanwhile or the options ask for
// less time than usual.
Profile measured_profile(const PlanningOptions&, const NetworkOptions&, const Graph& lowered,
                         const std::shared_ptr<const Optimiser>&, Rank&, const ChosenTransport&);

}  // namespace antichain
