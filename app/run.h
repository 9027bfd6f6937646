// run() is the whole program as one call. A user's program that calls it has all commands, and its own models
// beside the shipped ones:
//
//   int main(int argc, char** argv) { return antichain::run(argc, argv, {{"mine", mine}}); }
#pragma once

#include <vector>

#include "models/model.h"

namespace antichain {

// Registers the models, then runs the one subcommand that the command line names. Returns the exit code. An
// error is one sentence on stderr, printed once for the whole job.
int run(int argc, char** argv, const std::vector<NamedModel>& models = {});

}  // namespace antichain
