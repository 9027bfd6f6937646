#include "app/options/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "app/cli/checks.h"
#include "app/cli/command_line.h"
#include "app/cli/output_file.h"
#include "framework/backend.h"
#include "framework/error.h"
#include "framework/known_names.h"
#include "framework/module.h"
#include "framework/precision.h"
#include "framework/say.h"
#include "layers/cpu/cpu_isa.h"
#include "models/model.h"
#include "pipeline/host/launch.h"
#include "pipeline/schedule/policy.h"

namespace antichain {
namespace {

constexpr int64_t most_samples = 1'000'000, most_microbatches = 4096, most_ranks = 1024;
constexpr int64_t most_pixels_a_side = 16'384;
constexpr double most_watchdog_s = 1e6;

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
  CLI::Option* local =
      app.add_option("--local", o.local, "run N ranks as threads of this process, without mpirun");
  check_whole(local, 1, most_ranks)->type_name("N")->group("Machine");
}

}  // namespace

int NetworkOptions::microbatch() const {
  if (batch % microbatches != 0) {
    throw Error(
        fmt::format("a batch of {} can't be cut into {} micro-batches of equal size", batch, microbatches),
        "choose --batch as a multiple of --microbatches", ExitCode::usage);
  }
  return batch / microbatches;
}

CLI::Option* add_model_option(CLI::App& app, NetworkOptions& o) {
  std::vector<std::string> understood = model_names();
  understood.push_back("squeezenet");  // version 1.0
  CLI::Option* model =
      app.add_option("--model", o.model, fmt::format("the network: {}", fmt::join(model_names(), ", ")));
  check_name(model, "model", understood)->type_name("NAME")->group("Network");
  add_graph_option(app, model, o.graph, o.model, o.classes);
  return model;
}

CLI::Option* add_graph_option(CLI::App& app, CLI::Option* model_option, std::string& graph,
                              std::string& model, int& classes) {
  CLI::Option* option =
      app.add_option("--graph", graph,
                     fmt::format("a network from elsewhere{}: a folder NAME.antichain, or its "
                                 "graph.json alone, which brings no weights",
                                 model_option ? ", in place of --model" : ""));
  if (model_option) option->excludes(model_option);
  return option->type_name("FILE")->group("Network")->each(
      [&model, &classes, model_option](const std::string& path) {
        const GraphFile file = read_graph_file(path);
        register_graph(file);
        model = file.model();
        if (classes == 0) classes = int(file.classes());
        if (model_option) model_option->required(false);
      });
}

std::string graph_hash(const std::string& model) { return make_model(model, {.microbatch = 2}).hash(); }

void add_form_option(CLI::App& app, std::string& form) {
  CLI::Option* option = app.add_option("--form", form, "cifar, or imagenet: as torchvision has it");
  check_name(option, "form", {"cifar", "imagenet"})
      ->type_name("NAME")
      ->capture_default_str()
      ->group("Network");
}

void add_aux_option(CLI::App& app, double& aux) {
  CLI::Option* option =
      app.add_option("--aux", aux, "weight of Inception-v3's auxiliary loss; 0 leaves its head out");
  check_number(option, 0, 1e6)->type_name("X")->capture_default_str()->group("Network");
}

CLI::Option* add_microbatches_option(CLI::App& app, int& microbatches, const std::string& group) {
  CLI::Option* option = app.add_option(
      "--microbatches", microbatches,
      "parts of equal size that a batch is cut into, one after the other through the pipeline");
  return check_whole(option, 1, most_microbatches)->type_name("N")->capture_default_str()->group(group);
}

void add_network_options(CLI::App& app, NetworkOptions& o) {
  add_model_option(app, o)->capture_default_str();
  add_form_option(app, o.form);
  add_aux_option(app, o.aux);
  const auto add_share = [&](const char* name, std::optional<double>& share, const char* description) {
    CLI::Option* option = app.add_option(name, share, description);
    check_number(option, 0, 0.999)->type_name("X")->default_str("the model's")->group("Network");
  };
  add_share(
      "--dropout", o.dropout,
      "share that dropout drops: 0.5 in AlexNet, VGG, SqueezeNet and Inception-v3, 0.2 in MobileNets and "
      "EfficientNet");
  add_share(
      "--stochastic-depth", o.stochastic_depth,
      "share of the samples that pass the last residual block by its shortcut only; earlier blocks have "
      "proportionally less: 0.2 in EfficientNet, 0.1 in ConvNeXt");
  CLI::Option* batch =
      app.add_option("--batch", o.batch, "samples per step; what is left over at an epoch's end is dropped");
  check_whole(batch, 1, most_samples)->type_name("N")->default_str("the model's recipe's")->group("Network");
  add_microbatches_option(app, o.microbatches, "Network");
  CLI::Option* smoothing = app.add_option("--label-smoothing", o.label_smoothing,
                                          "share of the target that is spread over all classes");
  check_number(smoothing, 0, 0.999)->type_name("X")->capture_default_str()->group("Network");
  app.add_flag("--soft-labels", o.soft_labels,
               "labels are each class's share of the image; train's --mixup and --cutmix switch this on")
      ->group("Network");
  add_precision_option(app, o.precision)->group("Network");
  CLI::Option* image =
      app.add_option("--image", o.image, "height and width in pixels [the data set's, or the form's usual]");
  check_whole(image, 1, most_pixels_a_side)->type_name("N")->group("Network");
  CLI::Option* classes =
      app.add_option("--classes", o.classes, "classes [the data set's, or the form's usual]");
  check_whole(classes, 2, 1'000'000)->type_name("N")->group("Network")->excludes(app.get_option("--graph"));
}

void settle_batch(NetworkOptions& o) {
  if (o.batch == 0) o.batch = recipe_of(o.model).batch;
}

CLI::Option* add_device_option(CLI::App& app, MachineOptions& o) {
  std::vector<std::string> modules, automatic;
  for (const EngineModule& module : engine_modules()) {
    modules.push_back(module.choice + ", where its module is built");
    automatic.push_back(fmt::format("{} if there is a {}", module.device, module.needs));
  }
  CLI::Option* device = app.add_option(
      "--device", o.device,
      fmt::format("the backend that computes: cpu; {}; auto: {}; train knows rehearse:PROFILE, too",
                  fmt::join(modules, "; "), fmt::join(automatic, ", ")));
  std::vector<std::string> known = device_names();
  known.push_back("auto");
  device->check([known](const std::string& name) {
    if (!name.starts_with("rehearse:") && std::ranges::find(known, name) == known.end())
      refuse_name("device", name, known, name == "gpu" ? engine_modules()[0].device : "");
    return std::string();
  });
  const auto chosen = [&o](const std::string& name) {
    return name == "auto" ? best_backend(o.why_cpu) : name;
  };
  device->transform(std::function<std::string(std::string)>(chosen));  // runs before the check
  return device->type_name("NAME")->capture_default_str()->group("Machine");
}

void say_why_cpu(const MachineOptions& o) {
  if (!o.why_cpu.empty() && rank_hint() == 0) note(fmt::format("{} on the CPU: {}", o.cpu_does, o.why_cpu));
}

CLI::Option* add_precision_option(CLI::App& app, std::string& precision) {
  CLI::Option* option = app.add_option(
      "--precision", precision,
      fmt::format(
          "what is stored between operators and multiplied: {}; weights stay float32, and nothing falls "
          "back where the machine lacks the instructions",
          fmt::join(precision_names(), ", ")));
  return check_name(option, "precision", precision_names())
      ->type_name("NAME")
      ->capture_default_str()
      ->group("Machine");
}

void add_watchdog_option(CLI::App& app, MachineOptions& o) {
  o.command = app.get_name();
  CLI::Option* watchdog =
      app.add_option("--watchdog", o.watchdog_s, "end the job when a rank makes no progress for so long");
  check_time(watchdog, 0.1, most_watchdog_s)->type_name("TIME")->capture_default_str()->group("Machine");
}

void add_threads_option(CLI::App& app, MachineOptions& o) {
  CLI::Option* threads =
      app.add_option("--threads", o.threads, "threads of each rank; equal counts give equal bits");
  check_whole(threads, 1, 1024)->type_name("N")->capture_default_str()->group("Machine");
}

void add_cpu_isa_option(CLI::App& app, MachineOptions& o) {
  std::vector<std::string> known = cpu_isa_names();
  CLI::Option* isa = app.add_option(
      "--cpu-isa", o.cpu_isa,
      fmt::format("the most instructions that the CPU may use, so that ranks on different processors compute "
                  "alike: {}, or auto: all that it has",
                  fmt::join(known, ", ")));
  known.insert(known.end(), {"avx512", "auto"});
  check_name(isa, "instruction set", known)
      ->each([](const std::string& name) {
        if (name != "auto") limit_cpu_isa(name);
      })
      ->type_name("NAME")
      ->capture_default_str()
      ->group("Machine");
}

void add_weight_gradients_option(CLI::App& app, MachineOptions& o) {
  CLI::Option* option = app.add_option(
      "--weight-gradients", o.weight_gradients,
      "how weight gradients of bf16 convolutions are summed on a GPU: rounded, which sums a micro-batch's in "
      "float32 and rounds it to bf16 once, as PyTorch does; or exact, which keeps float32, slower; a CPU's "
      "are exact");
  check_name(option, "way", {"rounded", "exact"})
      ->each([](const std::string& way) { ::setenv("ANTICHAIN_WEIGHT_GRADIENTS", way.c_str(), 1); })
      ->type_name("WAY")
      ->capture_default_str()
      ->group("Machine");
}

void add_machine_options(CLI::App& app, MachineOptions& o) {
  add_dry_run_option(app);
  add_local_option(app, o);
  add_device_option(app, o);
  add_cpu_isa_option(app, o);
  add_weight_gradients_option(app, o);
  add_threads_option(app, o);
  add_watchdog_option(app, o);
}

void add_transport_option(CLI::App& app, MachineOptions& o) {
  CLI::Option* transport = app.add_option("--transport", o.transport,
                                          "how tensors travel between ranks: mpi (GPUs': through host "
                                          "memory), nccl (from GPU to GPU), or auto: nccl where each rank "
                                          "is a process with a GPU of its own, else mpi");
  check_name(transport, "transport", {"auto", "mpi", "nccl"})
      ->type_name("NAME")
      ->capture_default_str()
      ->group("Machine");
}

void add_rank_options(CLI::App& app, MachineOptions& o) {
  add_dry_run_option(app);
  add_local_option(app, o);
  add_watchdog_option(app, o);
}

CLI::Option* add_schedule_option(CLI::App& app, ScheduleOptions& o) {
  CLI::Option* schedule =
      app.add_option("--schedule", o.schedule,
                     fmt::format("{}, auto (an order searched for the plan), or a file (of antichain "
                                 "simulate --write-schedule, edited or not)",
                                 fmt::join(training_policies(), ", ")));
  return schedule->type_name("NAME|FILE")->capture_default_str()->group("Schedule");
}

CLI::Option* add_output_option(CLI::App& app, const std::string& name, std::string& file,
                               const std::string& description) {
  return app.add_option(name, file, description)
      ->type_name("FILE")
      ->group("Output")
      ->each([name](const std::string& given) { keep_standard_output(name, given); });
}

}  // namespace antichain
