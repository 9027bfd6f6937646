// This check keeps a slip from costing a file: it refuses two outputs of one name, and an output over a file
// that the same command reads.
#pragma once

#include "app/cli/cli_forward.h"

namespace antichain {

// Throws a usage Error naming the two options. The options of the group Output that name files are outputs;
// all others that name files are read.
void check_nothing_is_overwritten(const CLI::App& command);

}  // namespace antichain
