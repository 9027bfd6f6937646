// This file parses the lines of PipeDream's graph.txt, each by itself. pipedream_profile.h interprets them
// together.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace antichain {

struct GraphText {
  enum Field { forward_time, backward_time, activation_size, parameter_size, stage_id };
  struct Node {
    std::string id, description;
    std::array<std::optional<int64_t>, 5> fields;  // nanoseconds, bytes; all but stage_id are there
    int line = 0;
    int64_t operator[](Field field) const { return *fields[field]; }
  };
  struct Edge {
    std::string from, to;
    int line = 0;
  };
  std::vector<Node> nodes;  // ids differ
  std::vector<Edge> edges;
};

// Throws Error with `origin` and the line for a line that is cut off or malformed, an unknown, missing or
// repeated field, a time or size that is no number, negative, or too large to add up, a repeated id, and a
// file without nodes.
GraphText parse_graph_text(const std::string& text, const std::string& origin);

// Throws an Error that reads "origin:line: why".
[[noreturn]] void fail_in_line(const std::string& origin, int line, const std::string& why);

}  // namespace antichain
