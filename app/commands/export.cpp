// antichain export writes a network's weights to a file. They are initial ones, or those of another file. A
// folder NAME.antichain gets the network as well, and --graph reads it (docs/bring-your-model.md).
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <memory>

#include "app/cli/checks.h"
#include "app/cli/commands.h"
#include "app/cli/number_text.h"
#include "app/cli/option_row.h"
#include "app/cli/overwriting.h"
#include "app/obtain/init_weights.h"
#include "app/options/options.h"
#include "app/options/weight_file_options.h"
#include "framework/error.h"
#include "framework/files/state_dict.h"
#include "framework/json.h"
#include "framework/version.h"
#include "models/graph_file.h"
#include "pipeline/host/launch.h"

namespace antichain {
namespace {

namespace fs = std::filesystem;

const std::string made_by_export = "antichain ";  // and its version

struct ExportOptions {
  NetworkOptions network;
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
  return complete(graph, fitted, options.seed, file);
}

bool wants_folder(const ExportOptions& options) {
  return fs::path(options.out_file).extension() == folder_ending;
}

void write_folder(const fs::path& folder, const Graph& graph, const Weights& weights) {
  std::error_code failed;
  fs::create_directory(folder, failed);
  if (failed) throw Error(fmt::format("can't make the folder {}: {}", folder.string(), failed.message()));
  write_file((folder / graph_in_folder).string(), to_graph_json(graph, made_by_export + version()));
  write_weights((folder / weights_in_folder).string(), weights, WeightFormat::safetensors);
}

// The folder of a network that another program made is not written to.
void check_folder(const fs::path& folder) {
  const auto made_here = [graph = (folder / graph_in_folder).string()] {
    if (!read_graph_file(graph).made_by().starts_with(made_by_export)) throw Error("it is another's");
  };
  for (const char* name : {graph_in_folder, weights_in_folder, check_in_folder})
    check_replaces_only("of a network that antichain export wrote", (folder / name).string(), made_here);
}

void check_destination(const ExportOptions& options) {
  if (!wants_folder(options)) check_writable({options.out_file});
  if (fs::path(options.out_file).extension() == onnx_ending)
    throw Error(
        "export writes no ONNX file",
        fmt::format("write NAME.antichain, of which python3 -m antichain.onnx export NAME.antichain {} "
                    "makes one",
                    options.out_file),
        ExitCode::usage);
  if (!wants_folder(options)) return check_weights_output(options.format, options.out_file);
  if (options.format == "hdf5")
    throw Error("--format hdf5 is given, but the weights of a folder are safetensors", "leave it out",
                ExitCode::usage);
  check_folder(options.out_file);
}

void run(const ExportOptions& options) {
  check_destination(options);
  const Graph graph = options.network.made(2);  // batch norm wants two
  const Weights weights = with_all_names(graph, weights_to_export(graph, options));
  if (rank_hint() > 0) return;  // under mpirun rank 0 writes
  if (wants_folder(options))
    write_folder(options.out_file, graph, weights);
  else
    write_weights(options.out_file, weights, format_of(options.format, options.out_file));
  int64_t bytes = 0;
  for (const NamedTensor& tensor : weights) bytes += tensor.bytes();
  fmt::print("{}: {} of {}, {:.1f} MiB\n", options.out_file, counted(int64_t(weights.size()), "tensor"),
             graph.model(), double(bytes) / (1 << 20));
}

}  // namespace

void add_export(CLI::App& app) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App& command = add_command(
      app, "export", "write a network's weights, or the network with them",
      "antichain export --model resnet50 --form imagenet --init resnet50.safetensors --out resnet50.h5");
  add_form_options(command, options->network);
  const std::string group = "Weights";
  CLI::Option* seed = add_option(command, group, "--seed N", options->seed, whole_between(0, INT64_MAX),
                                 "of the initial weights");
  add_init_options(command, options->init, group);
  add_format_option(command, options->format);
  add_output_option(command, "--out", options->out_file,
                    "the file to write, or a folder NAME.antichain with the network and its weights")
      ->required();
  command.callback([options, seed] {
    if (options->init.file().empty())
      options->init.whole_file = weights_of_folder(options->network.graph.path);
    if (const std::string& file = options->init.whole_file; !file.empty() && seed->count() > 0)
      throw Error(fmt::format("--seed draws weights, but all are those of {}", file),
                  "leave it out, or take what fits of a file with --init-partial", ExitCode::usage);
    run(*options);
  });
}

}  // namespace antichain
