// A pattern selects parameters by their names in files of weights, as a shell's does file names: * stands for
// any characters, dots among them, ? for one, and [ab] for one of these. "layer1.*" has all parameters of
// layer1, and "*.bias" all that are called so.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/graph.h"

namespace antichain {

bool matches(const std::string& pattern, const std::string& name);

// NamePatterns looks up names in a list of patterns, and knows which of these have matched one.
class NamePatterns {
 public:
  explicit NamePatterns(std::vector<std::string> patterns = {})
      : patterns_(std::move(patterns)), matched_(patterns_.size()) {}

  // Returns the index of the last pattern that the name matches, −1 where there is none. All that it matches
  // count as matched.
  int find(const std::string& name);
  // Throws Error (usage) naming the option and its first pattern that has matched no name. `what` is what
  // has these names: "parameter".
  void check_all_match(std::string_view option, std::string_view what, const Graph&) const;

 private:
  std::vector<std::string> patterns_;
  std::vector<bool> matched_;
};

}  // namespace antichain
