// These planners see the network as a sequence, its nodes in graph order, and cut it contiguously.
//
//   uniform        equally many nodes a stage: what the exact planner is compared with
//   block          a block partition of the node times: stages whose times differ by no more than the slowest
//                  node. It balances well where nodes are small, but never asks for the smallest slowest
//                  stage
//   hashrate       the split whose busiest device has the fewest FLOPs for its speed. It needs no measured
//                  time, and misjudges operators that wait for memory rather than compute
//   cudasize       the split whose fullest device is least full, by the memory of
//                  partition/plan/stage_cost.h. Early stages have more micro-batches in flight, so they get
//                  fewer nodes. Times play no part
//   handsplit      cuts where a person says: at nodes named one by one, or at those shipped for the model
//   data-parallel  no pipeline: one stage, and every device is a replica of it. Pipelines compete with this
//
// The literature calls three of them hashrate_mp, cudasize_mp and handsplit_mp; here the splits of the first
// two are optimal. Devices and links play no part in uniform, block and handsplit.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "framework/error.h"
#include "partition/plan/cut_file.h"
#include "partition/plan/finish_plan.h"
#include "partition/plan/stage_cost.h"
#include "partition/planners/balanced_sequence.h"
#include "partition/planners/block_partition.h"
#include "partition/planners/planner.h"
#include "partition/search/cut_graph.h"

namespace antichain {
namespace {

// Stage s ends after ends[s] nodes of the graph order (inputs are not counted), on rank and device s.
std::vector<PlanStage> sequence_stages(const Profile& profile, const std::vector<int>& ends) {
  std::vector<int> order;
  for (size_t n = 0; n < profile.nodes.size(); ++n)
    if (profile.nodes[n].role != Role::input) order.push_back(int(n));
  std::vector<PlanStage> stages;
  for (size_t s = 0; s < ends.size(); ++s) {
    const int begin = s == 0 ? 0 : ends[s - 1];
    stages.push_back({{order.begin() + begin, order.begin() + ends[s]}, {int(s)}});
  }
  return stages;
}

// A Sequence is the network as these planners see it, and what is asked for. It throws a usage Error where
// replicas are.
struct Sequence {
  Sequence(const Profile& its_profile, const PlanOptions& its_options, Method its_method)
      : profile(its_profile), options(its_options), method(its_method) {
    check(options, profile);
    if (!options.replicas.off())
      throw Error(fmt::format("the method {} gives every stage one device, but replicas were asked for",
                              name_of(method)),
                  "turn replicas off, or choose antichain, pipedream or data-parallel", ExitCode::usage);
    graph = cut_graph(profile);
    parts = options.at_most ? std::min(options.stages, graph.size()) : options.stages;
  }
  // The antichains are the prefixes of the sequence, the empty one included.
  Plan cut_after(const std::vector<int>& ends) const {
    return finish_plan(profile, options, sequence_stages(profile, ends), name_of(method),
                       int64_t(ends.back()) + 1);
  }

  const Profile& profile;
  const PlanOptions& options;
  const Method method;
  CutGraph graph;
  int parts = 1;  // or fewer than were asked for, where there are fewer nodes and `at_most` allows it
};

// Returns sums[i], the sum of the first i prices.
std::vector<int64_t> running_sums(const std::vector<int64_t>& prices) {
  std::vector<int64_t> sums(prices.size() + 1, 0);
  std::partial_sum(prices.begin(), prices.end(), sums.begin() + 1);
  return sums;
}

// FLOPs are whole numbers, so that what lies between two nodes is an exact difference.
std::vector<int64_t> flops_before(const Profile& profile, const CutGraph& graph) {
  std::vector<int64_t> flops;
  double total = 0;
  for (const std::vector<int>& nodes : graph.nodes) {
    const double forward = profile.nodes[nodes[0]].cost.flops;
    total += forward;
    if (!(forward >= 0 && total < 0x1p62))
      throw Error(fmt::format("node {} takes {} FLOPs, which no plan can add up",
                              profile.nodes[nodes[0]].name, forward),
                  "check its flops in the profile");
    flops.push_back(std::llround(forward));
  }
  std::vector<int64_t> before = running_sums(flops);
  if (before.back() == 0)
    throw Error(fmt::format("the profile of {} has no FLOPs that hashrate could balance", profile.model),
                "give a profile with flops, or choose a method that goes by time");
  return before;
}

__extension__ typedef __int128 Wide;

// A Fullness is an exact fraction.
struct Fullness {
  int64_t bytes = 0, capacity = 1;
  bool operator<(const Fullness& other) const {
    return Wide(bytes) * other.capacity < Wide(other.bytes) * capacity;
  }
};

// Unlimited devices count as the largest limited one; where none is limited, all count alike.
std::vector<int64_t> capacities(const Cluster& cluster, int stages) {
  int64_t largest = 1;
  for (int s = 0; s < stages; ++s) largest = std::max(largest, cluster.device(s).memory_bytes);
  std::vector<int64_t> capacities;
  for (int s = 0; s < stages; ++s)
    capacities.push_back(cluster.device(s).memory_bytes > 0 ? cluster.device(s).memory_bytes : largest);
  return capacities;
}

[[noreturn]] void refuse_cuts(const std::string& sentence, const std::string& hint) {
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
  refuse_cuts(fmt::format("{} has no node \"{}\" to cut after", profile.model, cut),
              "cuts are node names of the profile");
}

// Returns the position after the node in the sequence.
int position_after(const Profile& profile, const CutGraph& graph, const std::string& cut) {
  const int node = find_node(profile, cut);
  for (int i = 0; i < graph.size(); ++i)
    if (graph.nodes[i][0] == node) return i + 1;
  refuse_cuts(fmt::format("node {} is an input and belongs to no stage", profile.nodes[node].name),
              "cut after a node that computes");
}

std::vector<int> ends_of(const Profile& profile, const CutGraph& graph,
                         const std::vector<std::string>& cuts) {
  std::vector<int> ends;
  for (size_t c = 0; c < cuts.size(); ++c) {
    ends.push_back(position_after(profile, graph, cuts[c]));
    if (c > 0 && ends[c] <= ends[c - 1])
      refuse_cuts(fmt::format("the cut after {} does not come after the one after {}", cuts[c], cuts[c - 1]),
                  "give the cuts in graph order, each once");
    if (ends[c] == graph.size())
      refuse_cuts(fmt::format("the cut after {} leaves stage {} empty: it is the last node", cuts[c], c + 1),
                  "name no last node for the last stage");
  }
  ends.push_back(graph.size());
  return ends;
}

std::vector<std::string> cuts_of(const Profile& profile, const PlanOptions& options) {
  const int given = int(options.cuts.size()) + 1;
  if (given == options.stages || options.stages == 1) {
    if (given != options.stages)
      refuse_cuts(fmt::format("{} cuts were given for 1 stage", given - 1), "ask for more stages");
    return options.cuts;
  }
  if (given == 1) {
    const auto text = shipped_cuts(profile.model);
    if (!text)
      refuse_cuts(fmt::format("no cuts are shipped for {}", profile.model),
                  "name them: the last node of every stage but the last");
    return choose_cut_line(parse_cuts(*text, profile.model + ".cuts"), profile, options.stages,
                           options.at_most)
        .last_nodes;
  }
  if (options.at_most && given < options.stages) return options.cuts;
  refuse_cuts(fmt::format("{} cuts make {} stages, but {} were asked for", given - 1, given, options.stages),
              "name the last node of every stage but the last");
}

}  // namespace

Plan plan_uniform(const Profile& profile, const PlanOptions& options) {
  const Sequence nodes(profile, options, Method::uniform);
  std::vector<int> ends;
  for (int s = 1; s <= nodes.parts; ++s) ends.push_back(int(int64_t(nodes.graph.size()) * s / nodes.parts));
  return nodes.cut_after(ends);
}

Plan plan_block(const Profile& profile, const PlanOptions& options) {
  const Sequence nodes(profile, options, Method::block);
  return nodes.cut_after(block_partition(nodes.graph.work_ns, nodes.parts));
}

Plan plan_hashrate(const Profile& profile, const PlanOptions& options) {
  const Sequence nodes(profile, options, Method::hashrate);
  const std::vector<int64_t> before = flops_before(profile, nodes.graph);
  const auto load = [&](int s, int begin, int end) {
    return double(before[end] - before[begin]) / options.cluster.device(s).speed;
  };
  return nodes.cut_after(balanced_sequence(nodes.graph.size(), nodes.parts, load));
}

Plan plan_cudasize(const Profile& profile, const PlanOptions& options) {
  const Sequence nodes(profile, options, Method::cudasize);
  const std::vector<int64_t> held = running_sums(nodes.graph.held_bytes),
                             kept = running_sums(nodes.graph.kept_bytes),
                             capacity = capacities(options.cluster, nodes.parts);
  std::vector<int> micro_batches;
  for (int s = 0; s < nodes.parts; ++s)
    micro_batches.push_back(options.in_flight({options.microbatches, nodes.parts, nodes.parts - s, 1}));
  const auto fullness = [&](int s, int begin, int end) {
    const StageSum bytes{.held_bytes = held[end] - held[begin], .kept_bytes = kept[end] - kept[begin]};
    return Fullness{memory_bytes(bytes, micro_batches[s], 1), capacity[s]};
  };
  return nodes.cut_after(balanced_sequence(nodes.graph.size(), nodes.parts, fullness));
}

Plan plan_handsplit(const Profile& profile, const PlanOptions& options) {
  const Sequence nodes(profile, options, Method::handsplit);
  return nodes.cut_after(ends_of(profile, nodes.graph, cuts_of(profile, options)));
}

// There is one antichain to consider: the last one.
Plan plan_data_parallel(const Profile& profile, const PlanOptions& options) {
  PlanOptions replicated = options;
  if (options.replicas.off()) replicated.replicas.automatic = true;
  if (!options.replicas.of_stage.empty())
    throw Error("data-parallel makes every device a replica, but replicas were given for each stage",
                "leave the replicas to the method, or choose antichain", ExitCode::usage);
  check(replicated, profile);
  std::vector<PlanStage> stages = sequence_stages(profile, {cut_graph(profile).size()});
  stages[0].ranks.resize(size_t(options.stages));
  std::iota(stages[0].ranks.begin(), stages[0].ranks.end(), 0);
  return finish_plan(profile, replicated, std::move(stages), name_of(Method::data_parallel), 1);
}

}  // namespace antichain
