// This file lists the subcommands of the program. Each adds itself to the command line, in a file of its own.
#pragma once

#include "app/cli/command_line.h"

namespace antichain {

void add_info(CLI::App&);
void add_profile(CLI::App&);
void add_plan(CLI::App&);
void add_simulate(CLI::App&);
void add_train(CLI::App&);
void add_doctor(CLI::App&);
void add_rehearse(CLI::App&);
void add_export(CLI::App&);
void add_evaluate(CLI::App&);
void add_generate(CLI::App&);
void add_gradients(CLI::App&);
void add_check(CLI::App&);
void add_data(CLI::App&);
void add_citations(CLI::App&);
void add_compare(CLI::App&);
void add_reference(CLI::App&);

}  // namespace antichain
