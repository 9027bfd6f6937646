// This file declares what an option accepts. Any other value is refused, before anything is computed, by one
// sentence that names the option, what it takes and what was given.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace antichain {

struct Accepts {
  // Returns the value as a variable takes it, or throws a usage Error. Empty: it accepts any text.
  std::function<std::string(const std::string& option, const std::string& text)> read = {};
  std::vector<std::string> names = {};  // those of its values that have names
};
Accepts whole_between(int64_t least, int64_t most);  // a whole number, both ends included
Accepts number_between(double least, double most);   // finite, both ends included
// These take units too (framework/units.h). The option gets bytes, bytes a second, and seconds.
Accepts size_up_to(int64_t most);                 // 10M, 64GiB: whole bytes from 0
Accepts rate_up_to(double most);                  // 12GB, 12GB/s; from 0
Accepts time_between(double least, double most);  // 90, 2h, 1h30m, 20us
// Accepts one of `known`, else suggests the nearest. `what` names the kind: "model".
Accepts one_of(const std::string& what, std::vector<std::string> known);
// Accepts what `parse` does not refuse by throwing.
Accepts checked_by(std::function<void(const std::string&)> parse, std::vector<std::string> names = {});

// Finds out whether these files can be written, before the work whose results they shall hold; "" is no file.
// Throws Error naming the file when its folder is missing or takes no files, or when the file is neither a
// plain file nor a stream (app/cli/output_file.h).
void check_writable(const std::vector<std::string>& files);

}  // namespace antichain
