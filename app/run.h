// The whole program as one call, so that a program of one's own has its commands and, beside the shipped
// models, models of one's own:
//
//   int main(int argc, char** argv) { return antichain::run(argc, argv, {{"mine", mine}}); }
#pragma once

#include <vector>

#include "models/model.h"

namespace antichain {

// Registers the models, then runs the one subcommand that the command line names. Returns the exit code; what
// goes wrong is one sentence on stderr, said once for the whole job.
int run(int argc, char** argv, const std::vector<NamedModel>& models = {});

}  // namespace antichain
