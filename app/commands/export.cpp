// antichain export writes a network's weights to a file: initial ones, or those of another file, converted.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>

#include "app/cli/checks.h"
#include "app/cli/commands.h"
#include "app/cli/number_text.h"
#include "app/obtain/init_weights.h"
#include "app/options/network_form.h"
#include "app/options/options.h"
#include "framework/error.h"
#include "framework/files/state_dict.h"
#include "pipeline/host/launch.h"

namespace antichain {
namespace {

struct ExportOptions {
  NetworkForm network;
  uint64_t seed = 0;
  InitOptions init;
  std::string format, out_file;
};

Weights weights_to_export(const Graph& graph, const ExportOptions& options) {
  const std::string& file = options.init.file();
  if (file.empty()) return initial_weights(graph, options.seed);
  const Weights given = read_weights(file, file_bytes(graph));
  const Fitted fitted = fit(graph, given, options.init.fit(), file);
  print_skipped(fitted.skipped);
  return complete(graph, given, fitted, options.seed, file);
}

void run(const ExportOptions& options) {
  check_writable({options.out_file});
  const WeightFormat format = format_of(options.format, options.out_file);
  const Graph graph = make_model(options.network.model, options.network.options(2));  // batch norm wants two
  const Weights weights = weights_to_export(graph, options);
  if (rank_hint() > 0) return;  // under mpirun rank 0 writes
  write_weights(options.out_file, weights, format);
  int64_t bytes = 0;
  for (const NamedTensor& tensor : weights) bytes += tensor.bytes();
  fmt::print("{}: {} of {}, {:.1f} MiB\n", options.out_file, counted(int64_t(weights.size()), "tensor"),
             graph.model(), double(bytes) / (1 << 20));
}

}  // namespace

void add_export(CLI::App& app) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App& command = add_command(
      app, "export", "write a network's weights as HDF5 or safetensors",
      "antichain export --model resnet50 --form imagenet --init resnet50.safetensors --out resnet50.h5");
  add_form_options(command, options->network);
  const std::string group = "Weights";
  CLI::Option* seed = command.add_option("--seed", options->seed, "of the initial weights");
  check_whole(seed, 0, INT64_MAX)->type_name("N")->capture_default_str()->group(group);
  add_init_options(command, options->init, group);
  add_format_option(command, options->format);
  add_output_option(command, "--out", options->out_file, "the file to write")->required();
  command.callback([options] {
    if (const std::string& graph = options->network.graph; !graph.empty() && options->init.file().empty())
      options->init.whole_file = weights_beside(graph);
    run(*options);
  });
}

}  // namespace antichain
