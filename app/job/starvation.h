// A rank that lacks a core does not measure its own times. A run says so once, as soon as it is known: ranks
// outnumber cores (app/job/job.h), or a rank lacked a core while nodes were timed or in training.
#pragma once

#include <string>

#include "framework/context.h"
#include "pipeline/transport/job.h"

namespace antichain {

// Warns on rank 0 that times are doubtful because of `how` ("rank 1 on n2 had no core for 50.0 % of its
// time"). It does not warn twice in a process, nor where ranks outnumber cores. "" warns of nothing.
void warn_of_starving(const std::string& how, const Job&, const Context&);

}  // namespace antichain
