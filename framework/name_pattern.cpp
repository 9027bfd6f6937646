#include "framework/name_pattern.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include "framework/error.h"

namespace antichain {

bool matches(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

int NamePatterns::find(const std::string& name) {
  int last = -1;
  for (size_t i = 0; i < patterns_.size(); ++i)
    if (matches(patterns_[i], name)) matched_[i] = true, last = int(i);
  return last;
}

void NamePatterns::check_all_match(std::string_view option, std::string_view what, const Graph& graph) const {
  for (size_t i = 0; i < patterns_.size(); ++i) {
    if (matched_[i]) continue;
    std::string name;
    for (const Node& node : graph)
      for (const ParamSpec& param : node.signature.params) name = graph.file_name(node, param);
    throw Error(
        fmt::format("{} '{}' matches no {} of '{}'", option, patterns_[i], what, graph.model()),
        fmt::format("a pattern is a whole name, such as '{}', in which * stands for any characters", name),
        ExitCode::usage);
  }
}

}  // namespace antichain
