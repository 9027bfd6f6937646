// This file takes the words of a command line to the one subcommand to run. It reads settings files, prints
// help, and answers mistakes with the nearest name.
#pragma once

#include <string>
#include <vector>

#include "app/cli/cli_forward.h"

namespace antichain {

// Adds a subcommand that takes --config and --quiet, with an example for its help. Its callback runs the
// command.
CLI::App& add_command(CLI::App& app, const std::string& name, const std::string& description,
                      const std::string& example);

// Adds --dry-run, for commands that may wait in a queue before they begin.
void add_dry_run_option(CLI::App&);
// Every such command calls this once it has checked what it was given as far as that takes no device, no
// other rank and no file of data, weights, profiles or plans. With --dry-run the command then ends, with code
// 0.
void end_dry_run();

// Returns the words with the settings of `--config FILE` in front of the flags, which override them
// (app/cli/settings_words.h). FILE is TOML: `name = value` lines, bare or in a section named as the
// subcommand.
std::vector<std::string> with_config(const CLI::App& app, std::vector<std::string> words);

// Parses and runs. Usage mistakes become an Error with a hint. --help, --version, help COMMAND and version
// print and return.
void parse_and_run(CLI::App& app, const std::vector<std::string>& words);

}  // namespace antichain
