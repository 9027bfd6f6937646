// This planner cuts where a person says (handsplit_mp in the literature): at nodes named one by one, or at
// those shipped for the model.
#include <fmt/format.h>

#include <charconv>
#include <chrono>

#include "framework/error.h"
#include "partition/plan/cut_file.h"
#include "partition/planners/sequence.h"

namespace antichain {
namespace {

[[noreturn]] void refuse(const std::string& sentence, const std::string& hint) {
  throw Error(sentence, hint, ExitCode::usage);
}

// Finds a node by name, or, in a file whose ids are numbers, by id.
int find_node(const Profile& profile, const std::string& cut) {
  for (size_t n = 0; n < profile.nodes.size(); ++n)
    if (profile.nodes[n].called(cut)) return int(n);
  int id = -1;
  const auto [end, error] = std::from_chars(cut.data(), cut.data() + cut.size(), id);
  if (!profile.ids_are_names && error == std::errc() && end == cut.data() + cut.size() && id >= 0 &&
      id < int(profile.nodes.size()))
    return id;
  refuse(fmt::format("{} has no node \"{}\" to cut after", profile.model, cut),
         "cuts are node names of the profile");
}

// Returns the position after the node in the sequence.
int position_after(const Profile& profile, const CutGraph& graph, const std::string& cut) {
  const int node = find_node(profile, cut);
  for (int i = 0; i < graph.size(); ++i)
    if (graph.nodes[i][0] == node) return i + 1;
  refuse(fmt::format("node {} is an input and belongs to no stage", profile.nodes[node].name),
         "cut after a node that computes");
}

std::vector<int> ends_of(const Profile& profile, const CutGraph& graph,
                         const std::vector<std::string>& cuts) {
  std::vector<int> ends;
  for (size_t c = 0; c < cuts.size(); ++c) {
    ends.push_back(position_after(profile, graph, cuts[c]));
    if (c > 0 && ends[c] <= ends[c - 1])
      refuse(fmt::format("the cut after {} does not come after the one after {}", cuts[c], cuts[c - 1]),
             "give the cuts in graph order, each once");
    if (ends[c] == graph.size())
      refuse(fmt::format("the cut after {} leaves stage {} empty: it is the last node", cuts[c], c + 1),
             "name no last node for the last stage");
  }
  ends.push_back(graph.size());
  return ends;
}

std::vector<std::string> cuts_of(const Profile& profile, const PlanOptions& options) {
  const int given = int(options.cuts.size()) + 1;
  if (given == options.stages || options.stages == 1) {
    if (given != options.stages)
      refuse(fmt::format("{} cuts were given for 1 stage", given - 1), "ask for more stages");
    return options.cuts;
  }
  if (given == 1) {
    const auto text = shipped_cuts(profile.model);
    if (!text)
      refuse(fmt::format("no cuts are shipped for {}", profile.model),
             "name them: the last node of every stage but the last");
    return choose_cut_line(parse_cuts(*text, profile.model + ".cuts"), profile, options.stages,
                           options.at_most)
        .last_nodes;
  }
  if (options.at_most && given < options.stages) return options.cuts;
  refuse(fmt::format("{} cuts make {} stages, but {} were asked for", given - 1, given, options.stages),
         "name the last node of every stage but the last");
}

}  // namespace

Plan plan_handsplit(const Profile& profile, const PlanOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const CutGraph graph = sequence_graph(profile, options, Method::handsplit);
  const std::vector<int> ends = ends_of(profile, graph, cuts_of(profile, options));
  return sequence_plan(profile, options, ends, Method::handsplit, start);
}

}  // namespace antichain
