// The commands under `antichain data`: one file each.
#pragma once

#include "app/cli/command_line.h"

namespace antichain {

void add_data_pack(CLI::App& data);
void add_data_show(CLI::App& data);
void add_data_batches(CLI::App& data);

}  // namespace antichain
