// antichain info lists the models, devices and schedules, and shows what one model is made of.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/checks.h"
#include "app/cli/commands.h"
#include "app/cli/number_text.h"
#include "app/cli/option_row.h"
#include "app/cli/output_file.h"
#include "app/cli/table.h"
#include "app/job/job_log.h"
#include "app/obtain/lowered_network.h"
#include "app/options/options.h"
#include "app/train/follow_recipe.h"
#include "framework/backend.h"
#include "framework/error.h"
#include "framework/json.h"
#include "framework/version.h"
#include "models/model.h"
#include "pipeline/host/launch.h"
#include "pipeline/planning/schedule_choice.h"
#include "pipeline/schedule/policy.h"

namespace antichain {
namespace {

struct InfoOptions {
  NetworkOptions network{.model = "", .batch = 1, .microbatches = 1};
  MachineOptions machine;
  std::string json_file;
};

int64_t parameters(const Node& node, bool frozen_ones = true) {
  int64_t count = 0;
  for (const ParamSpec& param : node.signature.params)
    if (param.of.empty() && (param.trained || frozen_ones)) count += param.shape.elements();
  return count;
}

struct Totals {
  int64_t nodes = 0;  // the nodes that compute, which a plan distributes; inputs are not among them
  int64_t parameters = 0, trained = 0;
  double flops = 0;

  // Returns "11,689,512 weights", or "513,000 of 11,689,512 weights trained".
  std::string weights() const {
    const std::string all = counted(parameters, "weight");
    return trained == parameters ? all : fmt::format("{} of {} trained", grouped(trained), all);
  }
};
Totals totals(const Graph& graph) {
  Totals sum;
  for (const Node& node : graph) {
    sum.nodes += node.op->type() != "input";
    sum.parameters += parameters(node);
    sum.trained += parameters(node, false);
    sum.flops += node.signature.forward_flops;
  }
  return sum;
}

std::string megaflops(double flops) { return fmt::format("{:.2f}", flops * 1e-6); }

// Returns "128x64x32x32", because blanks would cost columns.
std::string narrow(std::string shape) {
  std::erase(shape, ' ');
  return shape;
}

// Each of these prints a list and returns it for the JSON file.
nlohmann::ordered_json list_models(const InfoOptions& options) {
  Table table({{"model", Table::Align::left}, {"nodes"}, {"weights"}, {"forward\nMFLOP/image"}});
  auto models = nlohmann::ordered_json::array();
  for (const std::string& name : model_names()) {
    NetworkOptions network = options.network;
    network.model = name;
    const Totals sum = totals(lowered_network(network, options.machine));
    table.add({name, std::to_string(sum.nodes), grouped(sum.parameters), megaflops(sum.flops)});
    models.push_back({{"model", name},
                      {"nodes", sum.nodes},
                      {"weights", sum.parameters},
                      {"forward_flops_per_image", sum.flops}});
  }
  fmt::print("{}\n{}\n", styled(Style::heading, "Models"), table.str());
  return models;
}

nlohmann::ordered_json list_devices() {
  auto devices = nlohmann::ordered_json::array();
  fmt::print("{}\n", styled(Style::heading, "Devices"));
  for (const std::string& name : backend_names()) {
    fmt::print("  {}: {}\n", name, backend(name).description());
    devices.push_back({{"device", name}, {"description", backend(name).description()}});
  }
  return devices;
}

nlohmann::ordered_json list_schedules() {
  using enum Table::Align;
  Table table({{"schedule", left},
               {"stages\na rank", left},
               {"backward", left},
               {"replicas", left},
               {"weights", left}});
  auto schedules = nlohmann::ordered_json::array();
  for (const Policy& policy : policies()) {
    const std::string stages(stages_a_rank(policy.placement));
    schedules.push_back({{"schedule", policy.name},
                         {"trains", policy.trains},
                         {"stages_a_rank", stages},
                         {"halves", policy.halves},
                         {"replicas", policy.replicas},
                         {"asynchronous", policy.asynchronous()},
                         {"source", policy.citation}});
    const char* backward = !policy.trains ? "none" : policy.halves ? "in halves" : "whole";
    table.add({std::string(policy.name), stages, backward, policy.replicas ? "yes" : "no",
               policy.asynchronous() ? "older ones" : "of the step"});
  }
  fmt::print("\n{}\n{}", styled(Style::heading, "Schedules"), table.str());
  fmt::print("  With --schedule {} the order is searched for the plan.\n", planned_order);
  return schedules;
}

void list_all(const InfoOptions& options) {
  fmt::print("antichain {}\n\n", version());
  nlohmann::ordered_json all = {{"version", version()}};
  all.update(provenance());
  all["models"] = list_models(options);
  all["devices"] = list_devices();
  all["schedules"] = list_schedules();
  if (!options.json_file.empty()) write_output(options.json_file, all.dump(2) + "\n");
}

Table node_table(const Graph& graph) {
  using enum Table::Align;
  Table table({{"node"},
               {"name", left, Table::Role::key},
               {"operator", left},
               {"inputs", left},
               {"output", left},
               {"layout", left},
               {"weights"},
               {"forward\nMFLOP"}});
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    table.add({std::to_string(id), node.name, std::string(node.op->type()),
               fmt::format("{}", fmt::join(node.inputs, ",")), narrow(graph.shape(id).str()),
               std::string(name_of(node.output().layout)),
               parameters(node) == 0 ? "-" : grouped(parameters(node)) + (trains(node) ? "" : " frozen"),
               megaflops(node.signature.forward_flops)});
  }
  return table;
}

void list_nodes(const InfoOptions& options) {
  say_why_cpu(options.machine);
  const Graph graph = lowered_network(options.network, options.machine);
  const Totals sum = totals(graph);
  fmt::print("{} in micro-batches of {} on {}, graph {}\n{} and {}, {}, forward {} MFLOP\n{}\n{}",
             graph.model(), graph.microbatch(), options.machine.device, graph.hash(),
             counted(sum.nodes, "node"), counted(graph.size() - sum.nodes, "input"), sum.weights(),
             megaflops(sum.flops), hanging("Recipe", 10, describe(recipe_of(options.network.chosen()))),
             node_table(graph).str());
  write_output(options.json_file, to_json(unpriced(graph, backend(options.machine.device).description())));
}

}  // namespace

void add_info(CLI::App& app) {
  auto options = std::make_shared<InfoOptions>();
  CLI::App& command =
      add_command(app, "info", "list the models, devices and schedules, or the nodes of one model",
                  "antichain info --model resnet50 --form imagenet --batch 32");
  add_model_option(command, options->network)->description("list this model's nodes [all models]");
  add_form_option(command, options->network.form);
  add_aux_option(command, options->network.aux);
  const CLI::Option* freeze = add_freeze_option(command, options->network.freeze);
  const CLI::Option* batch = add_option(command, "Network", "--batch N", options->network.batch,
                                        whole_between(1, 1'000'000), "images, with --model or --graph");
  add_device_option(command, options->machine)->description("whose layouts to list, with --model or --graph");
  add_cpu_isa_option(command, options->machine);
  add_output_option(command, "--json", options->json_file,
                    "write the list; with --model or --graph a profile without times");
  command.callback([options, batch, freeze] {
    for (const CLI::Option* option : {batch, freeze})
      if (options->network.model.empty() && option->count() > 0)
        throw Error(fmt::format("{} is for the nodes of one network, and none is named", option->get_name()),
                    "add --model or --graph", ExitCode::usage);
    check_writable({options->json_file});
    if (rank_hint() > 0) return;  // under mpirun rank 0 prints
    begin_answer();
    options->network.model.empty() ? list_all(*options) : list_nodes(*options);
  });
}

}  // namespace antichain
