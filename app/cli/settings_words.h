// This file finds commands and options by their names, and turns a settings file into words of a command
// line.
#pragma once

#include <string>
#include <vector>

#include "app/cli/cli_forward.h"

namespace antichain {

std::vector<std::string> command_names(const CLI::App&);                 // below it
const CLI::App* find_command(const CLI::App&, const std::string& name);  // or nullptr

// Returns the option of that long name ("batch") that a settings file may give, or nullptr where there is
// none.
CLI::Option* find_option(const CLI::App& command, const std::string& name);

// Returns the long names of all options, --help, --help-all and --config included.
std::vector<std::string> option_names(const CLI::App& command);

// Returns --name=value words for the command that `path` names below `program`: first what the file says
// above all sections, then what its section of the command says. The whole file is checked, whatever command
// it is for. Throws Error (ExitCode::usage) naming the file and the line of a section, a name or a value that
// can't be used.
std::vector<std::string> settings_words(const CLI::App& program, const std::vector<std::string>& path,
                                        const std::string& file);

}  // namespace antichain
