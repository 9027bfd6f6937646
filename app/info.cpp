// antichain info: which models there are, and what one is made of.
//
//   antichain info                     all models with parameters, FLOPs and nodes
//   antichain info --model resnet18    its nodes in order, in this device's layouts
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/network.h"
#include "app/table.h"
#include "framework/backend.h"
#include "framework/json.h"
#include "framework/version.h"
#include "models/model.h"

namespace antichain {
namespace {

struct InfoOptions {
  NetworkOptions network{.model = "", .batch = 1, .microbatches = 1};
  MachineOptions machine;
  std::string json_file;
};

int64_t parameters(const Node& node) {
  int64_t count = 0;
  for (const ParamSpec& param : node.signature.params) count += param.shape.elements();
  return count;
}

struct Totals {
  int64_t parameters = 0;
  double flops = 0;
};
Totals totals(const Graph& graph) {
  Totals sum;
  for (const Node& node : graph) {
    sum.parameters += parameters(node);
    sum.flops += node.signature.forward_flops;
  }
  return sum;
}

std::string gigaflops(double flops) { return fmt::format("{:.4f}", flops * 1e-9); }

void list_models() {
  Table table({{"model", Table::Align::left}, {"parameters"}, {"forward GFLOP/image"}, {"nodes"}});
  for (const std::string& name : model_names()) {
    const Graph graph = make_model(name, {.microbatch = 1});
    const Totals sum = totals(graph);
    table.add({name, grouped(sum.parameters), gigaflops(sum.flops), std::to_string(graph.size())});
  }
  fmt::print("antichain {}\n\nModels\n{}\nDevices\n", version(), table.str());
  for (const std::string& name : backend_names()) fmt::print("  {}: {}\n", name, backend(name).description());
}

void list_nodes(const InfoOptions& options) {
  const Graph graph = lowered_network(options.network, options.machine);
  using enum Table::Align;
  Table table({{"node"},
               {"name", left},
               {"operator", left},
               {"inputs", left},
               {"output", left},
               {"layout", left},
               {"parameters"},
               {"forward GFLOP"}});
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    table.add({std::to_string(id), node.name, std::string(node.op->type()),
               fmt::format("{}", fmt::join(node.inputs, ",")), graph.shape(id).str(),
               std::string(name_of(node.output().layout)), grouped(parameters(node)),
               gigaflops(node.signature.forward_flops)});
  }
  const Totals sum = totals(graph);
  fmt::print("{}, micro-batches of {}, on {}: {} nodes, {} parameters, {} GFLOP forward\ngraph {}\n{}",
             graph.model(), graph.microbatch(), options.machine.device, graph.size(), grouped(sum.parameters),
             gigaflops(sum.flops), graph.hash(), table.str());
  if (!options.json_file.empty()) {
    write_file(options.json_file, to_json(unpriced(graph, backend(options.machine.device).description())));
  }
}

}  // namespace

void add_info(CLI::App& app) {
  auto options = std::make_shared<InfoOptions>();
  CLI::App& command = add_command(app, "info", "list the models, or one model's nodes",
                                  "antichain info --model squeezenet --batch 32");
  command.add_option("--model", options->network.model, "show this model's nodes")->group("Network");
  command.add_option("--batch", options->network.batch, "samples")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->group("Network");
  command.add_option("--device", options->machine.device, "whose layouts to show")
      ->capture_default_str()
      ->group("Machine");
  command.add_option("--json", options->json_file, "write the model as an unpriced profile")
      ->type_name("FILE")
      ->group("Output");
  command.callback([options] { options->network.model.empty() ? list_models() : list_nodes(*options); });
}

}  // namespace antichain
