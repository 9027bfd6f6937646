// A run's settings are all options of its command with their current values: those that were given, and the
// defaults of the others.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "app/cli/cli_forward.h"

namespace antichain {

// Returns the settings by name. Numbers are numbers, flags are true or false, and null stands for what is
// neither given nor has a value. Call it once the command has filled in what depends on others.
nlohmann::ordered_json settings_in_force(const CLI::App& command);

// Returns those that were given, as --config takes them again, without the names of files and folders that
// the run writes.
std::string given_as_toml(const CLI::App& command);

}  // namespace antichain
