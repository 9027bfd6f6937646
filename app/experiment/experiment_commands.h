// This file lists the commands under `antichain experiment`; each has a file of its own.
#pragma once

#include "app/cli/command_line.h"

namespace antichain {

void add_experiment_table1(CLI::App& experiment);
void add_experiment_speedup(CLI::App& experiment);

}  // namespace antichain
