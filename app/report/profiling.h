// A command obtains the profile of its network here: from a file, from the cache, or by measuring.
#pragma once

#include "app/obtain/network.h"
#include "partition/profile/profile.h"
#include "pipeline/transport/choose_transport.h"

namespace antichain {

// The given profile. Error when it is for another network than `lowered`, or of a kind that nothing can be
// run by.
Profile given_profile(const GivenFiles&, const PlanningOptions&, const Graph& lowered);
// Collective: the given one, else one measured before (app/obtain/profile_cache.h; rank 0 says so in one
// line), else one measured under the load of this job, and kept. The link is measured over the transport that
// was chosen for tensors; where the given profile's was measured over another one, rank 0 says so.
Profile obtain_profile(const GivenFiles&, const PlanningOptions&, const NetworkOptions&, const Graph& lowered,
                       Rank&, const ChosenTransport&);
// Collective: measured now, and kept, unless ranks lacked cores meanwhile or `seconds` are fewer than usual.
Profile measured_profile(const PlanningOptions&, const NetworkOptions&, const Graph& lowered, Rank&,
                         const ChosenTransport&,
                         double seconds = 0);  // about so long; 0: as long as is usual for the device

}  // namespace antichain
