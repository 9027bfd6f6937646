#include "app/options/network_form.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "app/cli/checks.h"
#include "framework/error.h"

namespace antichain {

ModelOptions NetworkForm::options(int microbatch, int image) const {
  return {.form = form == "cifar" ? Form::cifar : Form::imagenet,
          .microbatch = microbatch,
          .classes = classes,
          .image = image,
          .aux = aux};
}

void add_form_options(CLI::App& app, NetworkForm& o) {
  std::vector<std::string> understood = model_names();
  understood.push_back("squeezenet");  // version 1.0
  CLI::Option* model =
      app.add_option("--model", o.model, fmt::format("the network: {}", fmt::join(model_names(), ", ")));
  check_name(model, "model", understood)->type_name("NAME")->required()->group("Network");
  add_graph_option(app, model, o.graph, o.model, o.classes);
  add_form_option(app, o.form);
  CLI::Option* classes =
      app.add_option("--classes", o.classes, "classes [10 or 1000, as is usual of the form]");
  check_whole(classes, 2, 1'000'000)->type_name("N")->group("Network")->excludes(app.get_option("--graph"));
  add_aux_option(app, o.aux);
}

void add_one_rank_options(CLI::App& app, MachineOptions& o) {
  add_device_option(app, o);
  add_cpu_isa_option(app, o);
  add_weight_gradients_option(app, o);
  CLI::Option* threads = app.add_option("--threads", o.threads, "threads; equal counts give equal bits");
  check_whole(threads, 1, 1024)->type_name("N")->capture_default_str()->group("Machine");
}

void add_format_option(CLI::App& app, std::string& format) {
  CLI::Option* option =
      app.add_option("--format", format, "hdf5, or safetensors [by the ending of the file's name]");
  check_name(option, "format", {"hdf5", "safetensors"})->type_name("NAME")->group("Output");
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

}  // namespace antichain
