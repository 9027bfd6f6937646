#include "app/options/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>

#include "app/cli/checks.h"
#include "app/cli/command_line.h"
#include "app/cli/output_file.h"
#include "framework/backend.h"
#include "framework/error.h"
#include "framework/known_names.h"
#include "framework/module.h"
#include "framework/precision.h"
#include "framework/prediction.h"
#include "framework/say.h"
#include "layers/cpu/cpu_isa.h"
#include "pipeline/host/launch.h"
#include "pipeline/planning/schedule_choice.h"

namespace antichain {
namespace {

using enum OptionKind;

constexpr int64_t most_samples = 1'000'000, most_microbatches = 4096, most_ranks = 1024;
constexpr int64_t most_pixels_a_side = 16'384, most_tokens_a_sample = 1 << 20;
constexpr double most_watchdog_s = 1e6;
constexpr const char *network_group = "Network", *machine_group = "Machine";

std::vector<std::string> with(std::vector<std::string> names, std::initializer_list<const char*> more) {
  names.insert(names.end(), more.begin(), more.end());
  return names;
}

// Lists the devices of this build, and those of modules, which are loaded on request.
std::vector<std::string> device_names() {
  std::vector<std::string> names = backend_names();
  const auto add = [&](const std::string& name) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (const EngineModule& module : engine_modules()) {
    add(module.device);
    std::ranges::for_each(module.other_devices, add);
  }
  return names;
}

void add_local_option(CLI::App& app, MachineOptions& o) {
  add_option(app, machine_group, "--local N", o.local, whole_between(1, most_ranks),
             "run N ranks as threads of this process [as mpirun started them]", {speed});
}

}  // namespace

int NetworkOptions::microbatch() const {
  if (batch % microbatches != 0) {
    throw Error(
        fmt::format("a batch of {} can't be cut into {} micro-batches of equal size", batch, microbatches),
        "choose a number of --microbatches that divides it", ExitCode::usage);
  }
  return batch / microbatches;
}

ModelOptions NetworkOptions::model_options(int of_samples) const {
  return {.form = form == "cifar" ? Form::cifar : Form::imagenet,
          .microbatch = of_samples,
          .classes = classes,
          .image = image,
          .sequence = sequence,
          .vocabulary = vocabulary,
          .packed = packed,
          .label_smoothing = float(label_smoothing),
          .soft_labels = soft_labels,
          .dropout = dropout,
          .stochastic_depth = stochastic_depth,
          .aux = aux,
          .freeze = freeze};
}

CLI::Option* add_model_name_option(CLI::App& app, std::string& model) {
  return add_option(app, network_group, "--model NAME", model,
                    one_of("model", with(model_names(), {"squeezenet"})),  // its version 1.0
                    fmt::format("the network: {}", fmt::join(model_names(), ", ")), {network, "model"});
}

CLI::Option* add_model_option(CLI::App& app, NetworkOptions& o) {
  CLI::Option* model = add_model_name_option(app, o.model);
  add_graph_option(app, model, o.graph, o.model, o.classes);
  return model;
}

CLI::Option* add_graph_option(CLI::App& app, CLI::Option* model_option, GivenGraph& graph, std::string& model,
                              int& classes) {
  const auto read = [&, model_option](const std::string& path) {
    graph = {path, std::make_shared<const GraphFile>(read_graph_file(path))};
    model = graph.file->model();
    if (classes == 0) classes = int(graph.file->classes());
    if (model_option) model_option->required(false);
  };
  const auto fact = [&] {  // a hash of the nodes
    return graph.given() ? make_model(model_of(graph.file), {.microbatch = 2}).hash() : "none";
  };
  CLI::Option* option = add_option(app, network_group, "--graph FILE", {read, [&] { return graph.path; }}, {},
                                   fmt::format("a network from elsewhere{}: a folder NAME.antichain, or its "
                                               "graph.json alone, which brings no weights",
                                               model_option ? ", in place of --model" : ""),
                                   {network, "graph file", fact});
  if (model_option) option->excludes(model_option);
  return option;
}

void add_form_option(CLI::App& app, std::string& form) {
  add_option(app, network_group, "--form NAME", form, one_of("form", {"cifar", "imagenet"}),
             "cifar, or imagenet: as torchvision has it", {network, "form"});
}

void add_aux_option(CLI::App& app, double& aux) {
  add_option(app, network_group, "--aux X", aux, number_between(0, 1e6),
             "weight of Inception-v3's auxiliary loss; 0 leaves its head out", {network, "auxiliary loss"});
}

CLI::Option* add_freeze_option(CLI::App& app, std::vector<std::string>& patterns) {
  return add_option(
      app, network_group, "--freeze PATTERN", patterns, {},
      "do not train the parameters whose names match, such as 'layer1.*'; several, by commas or by "
      "the option given again, add up [all are trained]",
      {network, "frozen parameters"});
}

void add_classes_option(CLI::App& app, int& classes, const std::string& usual) {
  add_option(app, network_group, "--classes N", classes, whole_between(2, 1'000'000),
             "classes [" + usual + "]", {network, "classes"})
      ->excludes("--graph");
}

void add_label_smoothing_option(CLI::App& app, double& share) {
  add_option(app, network_group, "--label-smoothing X", share, number_between(0, 0.999),
             "share of the target that is spread over all classes", {network, "label smoothing"});
}

void add_token_options(CLI::App& app, NetworkOptions& o) {
  const auto usual = [&o] { return o.chosen().traits.usual; };
  const OptionGroup add(app, network_group);
  add("--sequence N", o.sequence, whole_between(1, most_tokens_a_sample),
      "tokens of a sample, of a network that reads tokens [the model's]",
      {network, "sequence", [=, &o] { return std::to_string(o.sequence ? o.sequence : usual().sequence); }});
  add("--vocabulary N", o.vocabulary, whole_between(2, 1'000'000),
      "different tokens [the data set's, or the model's]",
      {network, "vocabulary",
       [=, &o] { return std::to_string(o.vocabulary ? o.vocabulary : usual().vocabulary); }});
}

void add_microbatches_option(CLI::App& app, int& microbatches, const std::string& group) {
  add_option(app, group, "--microbatches N", microbatches, whole_between(1, most_microbatches),
             "parts of equal size that a batch is cut into, one after the other through the pipeline",
             {recipe, "micro-batches"});
}

void add_network_options(CLI::App& app, NetworkOptions& o) {
  const auto usual = [&o] { return o.chosen().traits.usual; };
  add_model_option(app, o);
  add_form_option(app, o.form);
  add_aux_option(app, o.aux);
  add_freeze_option(app, o.freeze);
  const OptionGroup add(app, network_group);
  add("--dropout X", o.dropout, number_between(0, 0.999),
      "share that dropout drops: 0.5 in AlexNet, VGG, SqueezeNet and Inception-v3, 0.2 in MobileNets and "
      "EfficientNet [the model's]",
      {network, "dropout", [=, &o] { return fmt::format("{}", o.dropout.value_or(usual().dropout)); }});
  add("--stochastic-depth X", o.stochastic_depth, number_between(0, 0.999),
      "share of the samples that pass the last residual block by its shortcut only; earlier blocks have "
      "proportionally less: 0.2 in EfficientNet, 0.1 in ConvNeXt [the model's]",
      {network, "stochastic depth",
       [=, &o] { return fmt::format("{}", o.stochastic_depth.value_or(usual().stochastic_depth)); }});
  add("--batch N", o.batch, whole_between(1, most_samples),
      "samples per step; what is left over at an epoch's end is dropped [the model's recipe's]",
      {recipe, "batch"});
  add_microbatches_option(app, o.microbatches, network_group);
  add_label_smoothing_option(app, o.label_smoothing);
  add_option(app, network_group, "--soft-labels", o.soft_labels, {},
             "labels are each class's share of the image; train's --mixup and --cutmix switch this on",
             {network, "soft labels"});
  add_precision_option(app, o.precision)->group(network_group);
  add_option(app, network_group, "--image N", o.image, whole_between(1, most_pixels_a_side),
             "height and width in pixels [the data set's, or the form's usual]",
             {network});  // the data determine it
  add_classes_option(app, o.classes, "the data set's, or the form's usual");
  add_token_options(app, o);
}

void settle_batch(NetworkOptions& o) {
  if (o.batch == 0) o.batch = recipe_of(o.chosen()).batch;
}

CLI::Option* add_device_option(CLI::App& app, MachineOptions& o) {
  std::vector<std::string> modules, automatic;
  for (const EngineModule& module : engine_modules()) {
    modules.push_back(module.choice + ", where its module is built");
    automatic.push_back(fmt::format("{} if there is a {}", module.device, module.needs));
  }
  std::vector<std::string> known = device_names();
  known.push_back("auto");
  const auto read = [&o, known](const std::string&, const std::string& given) {
    const std::string name = given == "auto" ? best_backend(o.why_cpu) : given;
    if (!name.starts_with("rehearse:") && std::ranges::find(known, name) == known.end())
      refuse_name("device", name, known, name == "gpu" ? engine_modules()[0].device : "");
    return name;
  };
  return add_option(
      app, machine_group, "--device NAME", o.device, {read, known},
      fmt::format("the backend that computes: cpu; {}; auto: {}; train knows rehearse:PROFILE, too",
                  fmt::join(modules, "; "), fmt::join(automatic, ", ")),
      {last_bits});
}

void say_why_cpu(const MachineOptions& o) {
  if (!o.why_cpu.empty() && rank_hint() == 0) note(fmt::format("{} on the CPU: {}", o.cpu_does, o.why_cpu));
}

CLI::Option* add_precision_option(CLI::App& app, std::string& precision) {
  return add_option(app, machine_group, "--precision NAME", precision, one_of("precision", precision_names()),
                    fmt::format("what is stored between operators and multiplied: {}; weights stay float32, "
                                "and nothing falls back where the machine lacks the instructions",
                                fmt::join(precision_names(), ", ")),
                    {network, "precision"});
}

void add_watchdog_option(CLI::App& app, MachineOptions& o) {
  o.command = app.get_name();
  add_option(app, machine_group, "--watchdog TIME", o.watchdog_s, time_between(0.1, most_watchdog_s),
             "end the job when a rank makes no progress for so long", {speed});
}

void add_threads_option(CLI::App& app, MachineOptions& o, const std::string& whose) {
  add_option(app, machine_group, "--threads N", o.threads, whole_between(1, 1024),
             "threads" + whose + "; equal counts give equal bits", {last_bits});
}

void add_cpu_isa_option(CLI::App& app, MachineOptions& o) {
  const auto limit = [&o](const std::string& name) {
    if ((o.cpu_isa = name) != "auto") limit_cpu_isa(name);
  };
  add_option(app, machine_group, "--cpu-isa NAME", {limit, [&o] { return o.cpu_isa; }},
             one_of("instruction set", with(cpu_isa_names(), {"avx512", "auto"})),
             fmt::format("the most instructions that the CPU may use, so that ranks on different processors "
                         "compute alike: {}, or auto: all that it has",
                         fmt::join(cpu_isa_names(), ", ")),
             {last_bits});
}

void add_weight_gradients_option(CLI::App& app, MachineOptions& o) {
  const auto choose = [&o](const std::string& way) {
    ::setenv("ANTICHAIN_WEIGHT_GRADIENTS", (o.weight_gradients = way).c_str(), 1);
  };
  add_option(app, machine_group, "--weight-gradients WAY", {choose, [&o] { return o.weight_gradients; }},
             one_of("way", {"rounded", "exact"}),
             "how weight gradients of bf16 convolutions are summed on a GPU: rounded, which sums a "
             "micro-batch's in float32 and rounds it to bf16 once, as PyTorch does; or exact, which keeps "
             "float32, slower; a CPU's are exact",
             {last_bits});
}

void add_machine_options(CLI::App& app, MachineOptions& o) {
  add_dry_run_option(app);
  add_local_option(app, o);
  add_device_option(app, o);
  add_cpu_isa_option(app, o);
  add_weight_gradients_option(app, o);
  add_threads_option(app, o, " of each rank");
  add_watchdog_option(app, o);
}

void add_transport_option(CLI::App& app, MachineOptions& o) {
  add_option(app, machine_group, "--transport NAME", o.transport,
             one_of("transport", {"auto", "mpi", "nccl"}),
             "how tensors travel between ranks: mpi (GPUs': through host memory), nccl (from GPU to GPU), or "
             "auto: nccl where each rank is a process with a GPU of its own, else mpi",
             {speed});
}

void add_rank_options(CLI::App& app, MachineOptions& o) {
  add_dry_run_option(app);
  add_local_option(app, o);
  add_watchdog_option(app, o);
}

CLI::Option* add_schedule_option(CLI::App& app, ScheduleOptions& o) {
  add_option(app, "Schedule", "--predict NAME", o.predict, one_of("prediction", prediction_names()),
             fmt::format("how forwards of {} predict weights by as many steps as these are old, from the "
                         "newest ones and the optimiser's state: {}",
                         asynchronous_policies_in_words(), fmt::join(prediction_names(), ", ")),
             {recipe, "prediction of weights"});
  return add_option(app, "Schedule", "--schedule NAME|FILE", o.schedule, {.names = schedule_names()},
                    fmt::format("{}, auto (an order searched for the plan), or a file (of antichain simulate "
                                "--write-schedule, edited or not)",
                                fmt::join(training_policies(), ", ")),
                    {speed});
}

void check(const ScheduleOptions& o) {
  if (o.predict == "none") return;
  if (is_training_policy(o.schedule) && policy(o.schedule).asynchronous()) return;
  throw Error(fmt::format("--predict {} is for a schedule that trains with older weights, but {} is none by "
                          "name",
                          o.predict, o.schedule),
              fmt::format("give --schedule {}; a schedule file says it by its line \"predict\"",
                          asynchronous_policies_in_words()),
              ExitCode::usage);
}

CLI::Option* add_output_option(CLI::App& app, const std::string& name, std::string& file,
                               const std::string& description) {
  const auto keep = [name = name.substr(0, name.find(' ')), &file](const std::string& given) {
    keep_standard_output(name, file = given);
  };
  const std::string what = name.find(' ') == std::string::npos ? name + " FILE" : name;
  return add_option(app, "Output", what, {keep, [&file] { return file; }}, {}, description, {output});
}

CLI::Option* add_width_option(CLI::App& app, int& width) {
  return add_option(app, "Output", "--width N", width, whole_between(40, 1000),
                    "width of the drawn grid, in characters [the terminal's, else 80]", {output});
}

}  // namespace antichain
