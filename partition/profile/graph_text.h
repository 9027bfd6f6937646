// PipeDream's graph.txt in its own words, line by line; what the lines mean together is
// pipedream_profile.h's.
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

// Error with `origin` and line: a line cut off or of another form, an unknown, missing or repeated field, a
// time or size that is no number, negative, or too large to add up, an id twice, no node at all.
GraphText parse_graph_text(const std::string& text, const std::string& origin);

// "origin:line: why".
[[noreturn]] void fail_in_line(const std::string& origin, int line, const std::string& why);

}  // namespace antichain
