#include "app/obtain/init_weights.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <filesystem>

#include "app/cli/number_text.h"
#include "app/cli/option_row.h"
#include "framework/printable.h"
#include "models/graph_file.h"
#include "pipeline/train/weights_io.h"
#include "pipeline/transport/agree.h"

namespace antichain {

void add_init_options(CLI::App& app, InitOptions& o, const std::string& group) {
  using enum OptionKind;
  const OptionGroup add(app, group);
  add("--init FILE", o.whole_file, {},
      "start from the weights of this HDF5 or safetensors file, or checkpoint, which must fit; "
      "CHECKPOINT/ema: its averages",
      {extent});
  add("--init-partial FILE", o.partial_file, {}, "start from what fits of this file, and list what does not",
      {extent});
  app.get_option("--init-partial")->excludes("--init");
}

std::string weights_of_folder(const std::string& graph) {
  const auto file = std::filesystem::path(graph) / weights_in_folder;
  std::error_code ignored;
  return !graph.empty() && std::filesystem::exists(file, ignored) ? file.string() : "";
}

InitOptions with_weights_of(const std::string& graph, InitOptions options, Job& job) {
  if (!graph.empty() && options.file().empty())
    options.whole_file = on_rank_zero(job, [&] { return weights_of_folder(graph); });
  return options;
}

void print_skipped(const std::vector<std::string>& sentences) {
  for (const std::string& sentence : sentences) fmt::print("Skipped: {}\n", printable_lines(sentence));
}

Weights read_initial(const InitOptions& options, const Graph& graph, Job& job) {
  if (options.file().empty()) return {};
  Weights weights = broadcast_weights(options.file(), graph, job);
  check_numbers(fit(graph, weights, options.fit(), options.file()), weights, options.file());
  return weights;
}

void start_from(const Weights& weights, const InitOptions& options, RankModel& model, const Rank& rank) {
  if (options.file().empty()) return;
  const std::vector<std::string> skipped = load_weights(model, weights, options.fit(), options.file());
  if (!rank.prints()) return;
  print_skipped(skipped);
  const size_t taken = fit(model.graph(), weights, options.fit(), options.file()).entries.size();
  fmt::print("Weights: {}, {}{}\n\n", options.file(),
             taken < weights.size() ? fmt::format("{} of its ", taken) : "",
             counted(int64_t(weights.size()), "tensor"));
}

}  // namespace antichain
