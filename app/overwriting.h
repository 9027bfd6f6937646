// That no file is lost by a slip: two outputs of one name, or an output over a file that the same command
// reads.
#pragma once

#include "app/cli_forward.h"

namespace antichain {

// Usage Error naming the two options. Outputs are the options of the group Output that name files, what else
// names files is read.
void check_nothing_is_overwritten(const CLI::App& command);

}  // namespace antichain
