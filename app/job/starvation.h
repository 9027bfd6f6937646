// Where a rank lacks a core, measured times are not its own. A run says so once, as soon as it shows: because
// ranks outnumber cores (app/job/job.h), because a rank lacked a core while nodes were timed, or because it
// did in training.
#pragma once

#include <string>

#include "framework/context.h"
#include "pipeline/transport/transport.h"

namespace antichain {

// Warns on rank 0 that times are doubtful because of `how` ("rank 1 on n2 had no core for 50.0 % of its
// time"), unless the process has said so before or has more ranks than cores. "" says nothing.
void warn_of_starving(const std::string& how, const Transport&, const Context&);

}  // namespace antichain
