#include "partition/plan/cut_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>

#include "framework/error.h"

namespace antichain {
namespace {

CutLine parse_line(const std::string& text, int number, const std::string& origin) {
  auto fail = [&](const std::string& why, const std::string& hint) {
    throw Error(fmt::format("{}:{}: {}", origin, number, why), hint);
  };
  const std::string form = "write lines such as \"3: nodeA nodeB\"";
  CutLine line{.line = number};
  const size_t colon = text.find(':');
  const char *begin = text.data() + std::min(text.find_first_not_of(" \t"), text.size()),
             *end = text.data() + std::min(colon, text.size());
  while (end > begin && (end[-1] == ' ' || end[-1] == '\t')) --end;
  const auto [after, error] = std::from_chars(begin, end, line.stages);
  if (colon == std::string::npos || error != std::errc() || after != end)
    fail("the line does not begin with a number of stages and a colon", form);
  if (line.stages < 2) fail(fmt::format("{} stages need no cut", line.stages), "begin with 2 stages or more");

  std::istringstream names(text.substr(colon + 1));
  std::set<std::string> seen;
  for (std::string name; names >> name;) {
    if (!seen.insert(name).second)
      fail(fmt::format("the node {} is there twice", name), "name each node once");
    line.last_nodes.push_back(name);
  }
  if (int(line.last_nodes.size()) != line.stages - 1)
    fail(fmt::format("{} stages have {} cuts, but {} nodes are named", line.stages, line.stages - 1,
                     line.last_nodes.size()),
         "name the last node of every stage but the last");
  return line;
}

}  // namespace

std::vector<CutLine> parse_cuts(std::string_view text, const std::string& origin) {
  std::vector<CutLine> lines;
  std::istringstream stream{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    line.erase(std::min(line.find('#'), line.size()));
    if (line.find_first_not_of(" \t\r") != std::string::npos)
      lines.push_back(parse_line(line, number, origin));
  }
  return lines;
}

const CutLine& choose_cut_line(const std::vector<CutLine>& lines, const Profile& profile, int stages,
                               bool at_most) {
  std::set<std::string> names;
  for (const ProfileNode& node : profile.nodes) {
    names.insert(node.name);
    names.insert(node.absorbed.begin(), node.absorbed.end());
  }
  std::set<int> available;
  const CutLine* chosen = nullptr;
  for (const CutLine& line : lines) {
    auto known = [&](const std::string& name) { return names.count(name) > 0; };
    if (!std::all_of(line.last_nodes.begin(), line.last_nodes.end(), known)) continue;
    available.insert(line.stages);
    if (line.stages != stages && !(at_most && line.stages < stages)) continue;
    if (!chosen || line.stages > chosen->stages) chosen = &line;
  }
  if (chosen) return *chosen;
  if (available.empty())
    throw Error(fmt::format("the cuts for {} name nodes that this profile does not have", profile.model),
                "name the cuts yourself: the last node of every stage but the last", ExitCode::usage);
  throw Error(fmt::format("there are no cuts into {} stages for {}, only into {}", stages, profile.model,
                          fmt::join(available, ", ")),
              "ask for one of these, or name the cuts yourself", ExitCode::usage);
}

}  // namespace antichain
