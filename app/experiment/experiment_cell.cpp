#include "app/experiment/experiment_cell.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "app/cli/checks.h"
#include "framework/json.h"
#include "pipeline/host/starved_time.h"

namespace antichain {
namespace {

constexpr std::array modes = {"simulate", "rehearse", "measure"};
constexpr std::array participles = {"simulated", "rehearsed", "measured"};

using Json = nlohmann::ordered_json;

Json json_of(const StepFigures& f) {
  return {{"step_s", f.step_s}, {"bubble_share", f.bubble_fraction}, {"busy_s", f.busy_s}};
}

StepFigures step_figures(JsonReader reader) {
  StepFigures f{.step_s = reader.at("step_s").number(),
                .bubble_fraction = reader.at("bubble_share").number(-1)};
  for (const JsonReader& busy : reader.at("busy_s").elements()) f.busy_s.push_back(busy.number());
  reader.done();
  return f;
}

Json json_of(const TrainedFigures& f) {
  Json json = {{"step_s", f.step_s},
               {"steps", f.steps},
               {"data", f.data},
               {"starved_share", f.starved_share},
               {"loss", Json::array()}};
  for (const auto& [step, loss] : f.loss) json["loss"].push_back({{"step", step}, {"loss", loss}});
  if (f.test_accuracy) json["test_accuracy"] = *f.test_accuracy;
  return json;
}

TrainedFigures trained_figures(JsonReader reader) {
  TrainedFigures f{.step_s = reader.at("step_s").number(),
                   .steps = reader.at("steps").integer(),
                   .data = reader.at("data").string()};
  for (JsonReader point : reader.at("loss").elements()) {
    f.loss.push_back({point.at("step").integer(), point.at("loss").number()});
    point.done();
  }
  if (reader.has("starved_share")) f.starved_share = reader.at("starved_share").number();
  if (reader.has("test_accuracy")) f.test_accuracy = reader.at("test_accuracy").number();
  reader.done();
  return f;
}

}  // namespace

const std::vector<StudyMethod>& study_methods() {
  using enum StudyMethod::Kind;
  static const std::vector<StudyMethod> methods = [] {
    std::vector<StudyMethod> all;
    const auto add = [&](Method planner, StudyMethod::Kind kind) {
      all.push_back(
          {fmt::format("{}{}", name_of(planner), kind == replicated ? "+replicas" : ""), planner, kind});
    };
    using enum Method;  // in the order of a report's columns
    for (const Method planner : {antichain, pipedream, block, hashrate, cudasize, handsplit, uniform})
      add(planner, straight);
    for (const Method planner : {antichain, pipedream}) add(planner, replicated);
    add(Method::data_parallel, StudyMethod::Kind::data_parallel);
    return all;
  }();
  return methods;
}

const StudyMethod& study_method(const std::string& name) {
  const auto it = std::ranges::find(study_methods(), name, &StudyMethod::name);
  if (it != study_methods().end()) return *it;
  std::vector<std::string> known;
  for (const StudyMethod& method : study_methods()) known.push_back(method.name);
  refuse_name("method", name, known);
}

StudyMode study_mode(const std::string& name) {
  const auto it = std::ranges::find(modes, name);
  if (it == modes.end()) refuse_name("mode", name, {modes.begin(), modes.end()});
  return StudyMode(it - modes.begin());
}

std::string name_of(StudyMode mode) { return modes[size_t(mode)]; }
std::string participle(StudyMode mode) { return participles[size_t(mode)]; }

std::string CellKey::name() const { return fmt::format("{}-{}-{}-{}", model, method, ranks, name_of(mode)); }

double Cell::step_s() const {
  return measured ? measured->step_s : rehearsed ? rehearsed->step_s : predicted.step_s;
}

const StepFigures& Cell::shares() const {
  return key.mode == StudyMode::rehearse && rehearsed ? *rehearsed : predicted;
}

bool starved(const Cell& c) { return c.measured && c.measured->starved_share > doubtful_starved_share; }

std::string to_json(const Cell& c) {
  Json json = {{"format", "antichain cell 1"},
               {"mode", participle(c.key.mode)},
               {"model", c.key.model},
               {"method", c.key.method},
               {"ranks", c.key.ranks}};
  if (!c.refusal.empty()) {
    json["refusal"] = c.refusal;
    return json.dump(2) + "\n";
  }
  json.update({{"microbatch", c.microbatch},
               {"microbatches", c.microbatches},
               {"plan_hash", c.plan_hash},
               {"stages", c.stages},
               {"planning_s", c.planning_s},
               {"one_device_s", c.one_device_s},
               {"slowest_s", c.slowest_s},
               {"imbalance", c.imbalance},
               {"time_scale", c.time_scale},
               {"boundary_bytes", c.boundary_bytes},
               {"memory_bytes", c.memory_bytes},
               {"predicted", json_of(c.predicted)}});
  if (c.rehearsed) json["rehearsed"] = json_of(*c.rehearsed);
  if (c.measured) json["measured"] = json_of(*c.measured);
  return json.dump(2) + "\n";
}

Cell cell_from_json(const std::string& text, const std::string& origin) {
  const nlohmann::json parsed = parse_json(text, origin);
  JsonReader json(parsed, origin);
  if (json.at("format").string() != "antichain cell 1") json.fail("is no cell of an experiment");
  Cell c{.key = {.model = json.at("model").string(),
                 .method = json.at("method").string(),
                 .ranks = int(json.at("ranks").integer(1, 1024))}};
  const auto mode = std::ranges::find(participles, json.at("mode").string());
  if (mode == participles.end()) json.fail("has a mode that is unknown");
  c.key.mode = StudyMode(mode - participles.begin());
  if (json.has("refusal")) {
    c.refusal = json.at("refusal").string();
    json.done();
    return c;
  }
  c.microbatch = int(json.at("microbatch").integer(0, INT32_MAX));
  c.microbatches = int(json.at("microbatches").integer(1, INT32_MAX));
  c.plan_hash = json.at("plan_hash").string();
  c.stages = json.at("stages").string();
  c.planning_s = json.at("planning_s").number();
  c.one_device_s = json.at("one_device_s").number();
  c.slowest_s = json.at("slowest_s").number();
  c.imbalance = json.at("imbalance").number();
  c.time_scale = json.at("time_scale").number();
  c.boundary_bytes = json.at("boundary_bytes").integer();
  c.memory_bytes = json.at("memory_bytes").integer();
  c.predicted = step_figures(json.at("predicted"));
  if (json.has("rehearsed")) c.rehearsed = step_figures(json.at("rehearsed"));
  if (json.has("measured")) c.measured = trained_figures(json.at("measured"));
  json.done();
  return c;
}

const Cell* one_rank_of(const std::vector<Cell>& cells, const Cell& cell) {
  const Cell* found = nullptr;
  for (const Cell& one : cells)
    if (one.key.model == cell.key.model && one.key.ranks == 1 && one.measured && cell.measured)
      if (!found || one.key.method == cell.key.method) found = &one;
  return found;
}

double speedup(const std::vector<Cell>& cells, const Cell& cell) {
  if (const Cell* one = one_rank_of(cells, cell)) return one->measured->step_s / cell.measured->step_s;
  return cell.one_device_s / cell.step_s();
}

}  // namespace antichain
