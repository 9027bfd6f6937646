#include "app/options/weight_file_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "app/cli/option_row.h"
#include "app/cli/overwriting.h"
#include "framework/error.h"

namespace antichain {

void add_form_options(CLI::App& app, NetworkOptions& o) {
  CLI::Option* model = add_model_name_option(app, o.model)->required()->default_str("");
  add_graph_option(app, model, o.graph, o.model, o.classes);
  add_form_option(app, o.form);
  add_classes_option(app, o.classes, "10 or 1000, as is usual of the form");
  add_aux_option(app, o.aux);
  add_token_options(app, o);
}

void add_one_rank_options(CLI::App& app, MachineOptions& o) {
  add_device_option(app, o);
  add_cpu_isa_option(app, o);
  add_weight_gradients_option(app, o);
  add_threads_option(app, o);
}

void add_format_option(CLI::App& app, std::string& format) {
  add_option(app, "Output", "--format NAME", format, one_of("format", {"hdf5", "safetensors"}),
             "hdf5, or safetensors [by the ending of the file's name]");
}

WeightFormat format_of(const std::string& format, const std::string& file) {
  if (format == "safetensors" || (format.empty() && file.ends_with(".safetensors")))
    return WeightFormat::safetensors;
  if (format == "hdf5" || (format.empty() && (file.ends_with(".h5") || file.ends_with(".hdf5"))))
    return WeightFormat::hdf5;
  throw Error(fmt::format("the name {} does not tell the format", file),
              "say --format hdf5 or --format safetensors, or end the name in .h5 or .safetensors",
              ExitCode::usage);
}

void check_weights_output(const std::string& format, const std::string& file) {
  if (file.empty()) return;
  format_of(format, file);
  check_replaces_only("a file of weights", file, [&] { read_weights(file); });
}

}  // namespace antichain
