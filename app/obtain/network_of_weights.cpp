#include "app/obtain/network_of_weights.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <sstream>

#include "app/cli/option_row.h"
#include "app/options/weight_file_options.h"
#include "framework/error.h"
#include "framework/files/checkpoint_weights.h"
#include "pipeline/transport/agree.h"

namespace antichain {

void add_weights_options(CLI::App& app, WeightsOptions& o) {
  add_form_options(app, o.network);
  CLI::Option* model = app.get_option("--model");
  model->required(false)->description(model->get_description() + " [a checkpoint's own]");
  for (const char* of_a_model : {"--form", "--classes", "--aux", "--sequence", "--vocabulary"})
    app.get_option(of_a_model)->needs(model);  // a checkpoint has its own, and a graph one form
  add_option(
      app, "Weights", "--weights FILE", o.file, {},
      "HDF5 or safetensors, named as in PyTorch's state_dict; or a folder of checkpoints; FOLDER/ema for the "
      "averages of --ema")
      ->required();
}

void settle(const CLI::App& app, WeightsOptions& o) {
  o.model_given = app.count("--model") > 0 || o.network.graph.given();
}

NetworkOptions form_of(const WeightsOptions& options, Rank& rank) {
  if (options.model_given) return options.network;
  const std::string said = on_rank_zero(rank.job, [&] {
    if (!is_in_checkpoint(options.file))
      throw Error(options.file + " does not say of which model these weights are", "give --model or --graph",
                  ExitCode::usage);
    Facts facts = read_checkpoint_model(options.file);
    if (const std::string& hash = facts["graph file"]; !hash.empty() && hash != "none")
      throw Error(fmt::format("{} has weights of {}, which is a network from a graph.json (graph {})",
                              options.file, facts["model"], hash),
                  "give --graph", ExitCode::usage);
    return fmt::format("{} {} {} {} {} {}", facts["model"], facts["form"], facts["classes"],
                       facts["auxiliary loss"], facts["sequence"], facts["vocabulary"]);
  });
  NetworkOptions form = options.network;
  std::istringstream(said) >> form.model >> form.form >> form.classes >> form.aux >> form.sequence >>
      form.vocabulary;
  return form;
}

}  // namespace antichain
