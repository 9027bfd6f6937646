// This file declares what an option accepts. Any other value is refused, before anything is computed, by one
// sentence that names the option, what it takes and what was given.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/cli/cli_forward.h"

namespace antichain {

// Each returns the option, for chaining, and throws an Error (ExitCode::usage) while the command line is
// parsed.
CLI::Option* check_whole(CLI::Option*, int64_t least, int64_t most);  // a whole number, both ends included
CLI::Option* check_number(CLI::Option*, double least, double most);   // finite, both ends included
// These take units too (framework/units.h). The option gets bytes, bytes a second, and seconds.
CLI::Option* check_size(CLI::Option*, int64_t most);               // 10M, 64GiB: whole bytes from 0
CLI::Option* check_rate(CLI::Option*, double most);                // 12GB, 12GB/s; from 0
CLI::Option* check_time(CLI::Option*, double least, double most);  // 90, 2h, 1h30m, 20us
// Accepts one of `known`, else suggests the nearest. `what` names the kind: "model".
CLI::Option* check_name(CLI::Option*, const std::string& what, std::vector<std::string> known);

// Finds out whether these files can be written, before the work whose results they shall hold; "" is no file.
// Throws Error naming the file when its folder is missing or takes no files, or when the file is neither a
// plain file nor a stream (app/cli/output_file.h).
void check_writable(const std::vector<std::string>& files);

}  // namespace antichain
