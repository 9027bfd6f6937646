// All options of a command with the values they have in force: those that were given, and the defaults of the
// others.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "app/cli_forward.h"

namespace antichain {

// By their names; numbers are numbers, flags true or false, null stands for what is neither given nor has a
// value. To be asked once the command has filled in what depends on others.
nlohmann::ordered_json settings_in_force(CLI::App& command);

// Those that were given, as --config takes them again, but for the names of files and folders that the run
// writes.
std::string given_as_toml(const CLI::App& command);

// "0.05" as a number, other texts as they are.
nlohmann::ordered_json typed(const std::string& text);

}  // namespace antichain
