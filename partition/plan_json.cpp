// plan.json: one field a line, figures beside the choices. Reading takes the choices (model, graph, nodes, ranks)
// and needs no figures, so that a plan can be edited or written by hand.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>

#include "framework/error.h"
#include "framework/json.h"
#include "partition/cut_graph.h"
#include "partition/plan.h"

namespace antichain {
namespace {

constexpr const char* format_name = "antichain plan 1";
constexpr int most = std::numeric_limits<int>::max();

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

std::string milliseconds(double seconds) { return fmt::format("{:.6f}", seconds * 1e3); }

// The tensors that cross from stages 0 … s to the later ones.
int64_t boundary_bytes(const Plan& plan, const Profile& profile, int stage) {
  std::vector<int> stage_of = plan.stage_of(int(profile.nodes.size()));
  std::vector<std::vector<int>> consumers = profile.consumers();
  int64_t bytes = 0;
  for (size_t n = 0; n < profile.nodes.size(); ++n) {
    auto beyond = [&](int consumer) { return stage_of[consumer] > stage; };
    if (stage_of[n] >= 0 && stage_of[n] <= stage &&
        std::any_of(consumers[n].begin(), consumers[n].end(), beyond))
      bytes += profile.nodes[n].cost.output_bytes;
  }
  return bytes;
}

std::string stage_json(const Plan& plan, const Profile& profile, int s) {
  const PlanStage& stage = plan.stages[s];
  double forward_s = 0, backward_s = 0;
  int64_t param_bytes = 0;
  std::vector<std::string> names;
  for (int n : stage.nodes) {
    const NodeCost& cost = profile.nodes[n].cost;
    forward_s += cost.forward_s;
    backward_s += cost.backward_s();
    param_bytes += cost.param_bytes;
    names.push_back(quoted(profile.nodes[n].name));
  }
  return fmt::format(
      R"(    {{
      "stage": {},
      "ranks": [{}],
      "nodes": [{}],
      "names": [{}],
      "forward_ms": {},
      "backward_ms": {},
      "compute_ms": {},
      "boundary_bytes": {},
      "param_bytes": {}
    }})",
      s, fmt::join(stage.ranks, ", "), fmt::join(stage.nodes, ", "), fmt::join(names, ", "),
      milliseconds(forward_s), milliseconds(backward_s), milliseconds(forward_s + backward_s),
      boundary_bytes(plan, profile, s), param_bytes);
}

// Ascending; a number that stands twice in the file is refused with the place of the second.
std::vector<int> numbers(const JsonReader& field, const char* what, std::set<int>& seen) {
  std::vector<int> all;
  for (const JsonReader& element : field.elements()) {
    all.push_back(int(element.integer(0, most)));
    if (!seen.insert(all.back()).second)
      element.fail(fmt::format("{} {} stands in the plan twice", what, all.back()));
  }
  std::sort(all.begin(), all.end());
  return all;
}

void ignore(JsonReader& object, std::initializer_list<const char*> fields) {
  for (const char* field : fields)
    if (object.has(field)) object.at(field);
}

PlanStage stage_of_json(JsonReader field, int s, std::set<int>& nodes, std::set<int>& ranks) {
  if (field.has("stage"))
    if (int64_t written = field.at("stage").integer(); written != s)
      field.fail(fmt::format("stage {} stands where stage {} is expected", written, s));
  PlanStage stage;
  stage.ranks = numbers(field.at("ranks"), "rank", ranks);
  stage.nodes = numbers(field.at("nodes"), "node", nodes);
  ignore(field, {"names", "forward_ms", "backward_ms", "compute_ms", "boundary_bytes", "param_bytes"});
  field.done();
  return stage;
}

void read_figures(JsonReader& file, Plan& plan) {
  plan.method = file.has("method") ? file.at("method").string() : "by hand";
  plan.objective = file.has("objective") ? file.at("objective").string() : "";
  if (file.has("bottleneck_ms")) plan.bottleneck_s = file.at("bottleneck_ms").number() / 1e3;
  if (file.has("lower_bound_ms")) plan.lower_bound_s = file.at("lower_bound_ms").number() / 1e3;
  if (file.has("states")) plan.states = file.at("states").integer();
  if (file.has("planning_ms")) plan.planning_s = file.at("planning_ms").number() / 1e3;
  ignore(file, {"gap", "proved_optimal"});  // follow from the two above
}

}  // namespace

std::string to_json(const Plan& plan, const Profile& profile) {
  validate(plan, profile);
  std::vector<std::string> stages;
  for (size_t s = 0; s < plan.stages.size(); ++s) stages.push_back(stage_json(plan, profile, int(s)));
  return fmt::format(
      R"({{
  "format": "{}",
  "model": {},
  "graph_hash": {},
  "method": {},
  "objective": {},
  "bottleneck_ms": {},
  "lower_bound_ms": {},
  "gap": {:.6f},
  "proved_optimal": {},
  "states": {},
  "planning_ms": {:.3f},
  "stages": [
{}
  ]
}}
)",
      format_name, quoted(plan.model), quoted(plan.graph_hash), quoted(plan.method), quoted(plan.objective),
      milliseconds(plan.bottleneck_s), milliseconds(plan.lower_bound_s), plan.gap(), plan.proved_optimal(),
      plan.states, plan.planning_s * 1e3, fmt::join(stages, ",\n"));
}

Plan plan_from_json(const std::string& text, const std::string& origin) {
  const nlohmann::json json = parse_json(text, origin);
  JsonReader file(json, origin);
  if (std::string format = file.at("format").string(); format != format_name)
    file.fail(fmt::format("the format is \"{}\", but \"{}\" is expected", format, format_name));
  Plan plan;
  plan.model = file.at("model").string();
  plan.graph_hash = file.at("graph_hash").string();
  read_figures(file, plan);
  std::set<int> nodes, ranks;
  for (const JsonReader& element : file.at("stages").elements())
    plan.stages.push_back(stage_of_json(element, int(plan.stages.size()), nodes, ranks));
  file.done();
  return plan;
}

}  // namespace antichain
