#include "partition/search/dot.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

namespace antichain {
namespace {

// The colours are those of M. Okabe and K. Ito, "Color Universal Design", 2008 (grey for black). The fill is
// the colour with four parts of white.
struct Colour {
  const char *line, *fill;
};
constexpr std::array<Colour, 8> palette = {{{"#0072B2", "#CCE3F0"},
                                            {"#E69F00", "#FAECCC"},
                                            {"#009E73", "#CCECE3"},
                                            {"#CC79A7", "#F5E4ED"},
                                            {"#56B4E9", "#DDF0FB"},
                                            {"#D55E00", "#F7DFCC"},
                                            {"#B5A900", "#FCFAD9"},
                                            {"#666666", "#E6E6E6"}}};
// Frames are the second channel: stages 8 apart differ in them.
constexpr std::array<const char*, 3> frames = {"solid", "dashed", "dotted"};

constexpr const char* header = R"(digraph {{
  label={}; labelloc=t; fontname="Helvetica"; fontsize=16; ranksep=0.25; nodesep=0.2;
  node [shape=box, style="rounded,filled", fillcolor=white, color="#666666", fontname="Helvetica",
        fontsize=10, margin="0.1,0.04", height=0.3];
  edge [color="#888888", arrowsize=0.6, fontname="Helvetica", fontsize=10];
)";

// Returns a DOT string: quotes and backslashes are escaped, and anything that is no character of a line is
// left blank.
std::string text(const std::string& line) {
  std::string escaped = "\"";
  for (char c : line) {
    if (c == '\n') {
      escaped += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return escaped + '"';
}

// Returns three digits: 0, 0.012, 1.23, 123, 1234.
std::string short_number(double x) {
  if (x == 0) return "0";
  return fmt::format("{:.{}f}", x, x >= 100 ? 0 : x >= 10 ? 1 : x >= 1 ? 2 : 3);
}

std::string ms(double seconds) { return short_number(seconds * 1e3) + " ms"; }
std::string size(int64_t bytes) {
  return bytes < 1024 ? fmt::format("{} B", bytes) : short_number(double(bytes) / (1 << 20)) + " MiB";
}

std::string box(const Profile& profile, int n) {
  const ProfileNode& node = profile.nodes[n];
  if (node.role == Role::input)
    return fmt::format("n{} [label={}, shape=ellipse, style=dashed];\n", n, text(node.name));
  return fmt::format("n{} [label={}];\n", n,
                     text(fmt::format("{}\n{} · {}", node.name, node.op, ms(node.cost.compute_s()))));
}

std::string numbered(const char* what, const std::vector<int>& numbers) {
  return fmt::format("{}{} {}", what, numbers.size() == 1 ? "" : "s", fmt::join(numbers, ", "));
}

std::string who(const PlanStage& stage) {
  const std::string ranks = numbered("rank", stage.ranks);
  if (stage.devices.empty() || stage.devices == stage.ranks) return ranks;
  return ranks + " on " + numbered("device", stage.devices);
}

// The label is a node beside the stage's first, because edges go around nodes but through labels of boxes.
std::string stage_box(const Plan& plan, const Profile& profile, int s) {
  const PlanStage& stage = plan.stages[s];
  const Colour& colour = palette[size_t(s) % palette.size()];
  double compute_s = 0;
  for (int n : stage.nodes) compute_s += profile.nodes[n].cost.compute_s();
  std::string dot = fmt::format(
      "  subgraph cluster_{} {{\n    label=\"\"; style=\"rounded,filled,{}\"; penwidth=2; color=\"{}\"; "
      "fillcolor=\"{}\"; node [color=\"{}\"];\n",
      s, frames[size_t(s) / palette.size() % frames.size()], colour.line, colour.fill, colour.line);
  dot += fmt::format("    stage{} [label={}, shape=plaintext, style=\"\", fontsize=13];\n", s,
                     text(fmt::format("stage {} · {} · {}", s, who(stage), ms(compute_s))));
  for (int n : stage.nodes) dot += "    " + box(profile, n);
  return dot + "  }\n";
}

// What crosses a cut is bold. A tensor is sent once to each stage that uses it, so the first edge into a
// stage says how large it is.
class Edges {
 public:
  Edges(const Plan& plan, const Profile& profile)
      : profile_(profile), stage_of_(plan.stage_of(int(profile.nodes.size()))), sent_(profile.nodes.size()) {}

  std::string draw(int from, int to) {
    const int sender = stage_of_[from], user = stage_of_[to];
    if (sender < 0) return fmt::format("  n{} -> n{} [style=dashed];\n", from, to);
    if (sender == user) return fmt::format("  n{} -> n{};\n", from, to);
    const bool first = sent_[from].insert(user).second;
    return fmt::format("  n{} -> n{} [penwidth=3, color=\"#222222\"{}];\n", from, to,
                       first ? ", label=" + text(" " + size(profile_.nodes[from].cost.output_bytes)) : "");
  }

 private:
  const Profile& profile_;
  std::vector<int> stage_of_;
  std::vector<std::set<int>> sent_;  // per tensor: to which stages
};

std::string state_box(const AntichainDag& dag, const Profile& profile, int state) {
  std::vector<std::string> names;
  for (int n : dag.antichain(state)) names.push_back(profile.nodes[n].name);
  return fmt::format(
      "  s{} [label={}];\n", state,
      text(fmt::format("{{{}}}\n{}", fmt::join(names, ", "), ms(double(dag.work_ns(state)) * 1e-9))));
}

}  // namespace

std::string to_dot(const Plan& plan, const Profile& profile) {
  validate(plan, profile);
  std::string dot = fmt::format(header, text(fmt::format("{} · {} · slowest stage or boundary {}", plan.model,
                                                         plan.method, ms(plan.bottleneck_s))));
  for (size_t n = 0; n < profile.nodes.size(); ++n)
    if (profile.nodes[n].role == Role::input) dot += "  " + box(profile, int(n));
  for (size_t s = 0; s < plan.stages.size(); ++s) dot += stage_box(plan, profile, int(s));
  Edges edges(plan, profile);
  for (size_t n = 0; n < profile.nodes.size(); ++n)
    for (int input : profile.nodes[n].inputs) dot += edges.draw(input, int(n));
  return dot + "}\n";
}

std::string to_dot(const AntichainDag& dag, const Profile& profile, int max_states) {
  const int shown = std::min(dag.states(), std::max(max_states, 0));
  std::string dot = fmt::format(header, text(fmt::format("{} · {} states", profile.model, dag.states())));
  for (int state = 0; state < shown; ++state) {
    dot += state_box(dag, profile, state);
    for (int next : dag.next(state))
      if (next < shown) dot += fmt::format("  s{} -> s{};\n", state, next);
  }
  if (shown < dag.states())
    dot += fmt::format(
        "  rest [shape=note, style=filled, label={}];\n{}",
        text(fmt::format("{} more states", dag.states() - shown)),
        shown > 0 ? fmt::format("  s{} -> rest [style=dashed, arrowhead=none];\n", shown - 1) : "");
  return dot + "}\n";
}

}  // namespace antichain
