// Commands that take a file of weights know the network by --model or --graph, or by what a checkpoint says
// of itself.
#pragma once

#include <string>

#include "app/cli/cli_forward.h"
#include "app/job/job.h"
#include "app/options/options.h"

namespace antichain {

struct WeightsOptions {
  NetworkOptions network;
  bool model_given = false;  // once the command line is read
  std::string file;          // of weights
};

// Adds --model, which may be left out, --graph, their form, and --weights.
void add_weights_options(CLI::App&, WeightsOptions&);
// Notes whether --model or --graph was given; called once the command line is read.
void settle(const CLI::App&, WeightsOptions&);
// Collective. Returns the form that was given, else the one that the checkpoint names. Throws a usage Error
// where neither says which.
NetworkOptions form_of(const WeightsOptions&, Rank&);

}  // namespace antichain
