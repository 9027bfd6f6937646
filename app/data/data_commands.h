// This file lists the commands under `antichain data`; each has a file of its own.
#pragma once

#include "app/cli/command_line.h"

namespace antichain {

void add_data_pack(CLI::App& data);
void add_data_show(CLI::App& data);
void add_data_batches(CLI::App& data);
void add_data_tokens(CLI::App& data);

}  // namespace antichain
