#include "app/run.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "app/commands.h"
#include "app/help.h"
#include "framework/error.h"
#include "framework/version.h"
#include "layers/cpu/backend.h"
#include "pipeline/launch.h"

namespace antichain {
namespace {

void run_command(const std::vector<std::string>& words) {
  register_cpu_backend();
  CLI::App app("Profile, plan, and train a neural network as a pipeline.", "antichain");
  app.formatter(help_formatter());
  app.footer(
      "Example\n"
      "  antichain profile  --model resnet18 --json profile.json\n"
      "  antichain plan     --profile profile.json --stages 4 --json plan.json\n"
      "  antichain simulate --profile profile.json --plan plan.json --microbatches 8\n"
      "  antichain train    --model resnet18 --profile profile.json --plan plan.json --local 4");
  app.set_version_flag("--version", version());
  app.require_subcommand(1);
  for (const auto add :
       {add_info, add_profile, add_plan, add_simulate, add_train, add_export, add_evaluate, add_gradients})
    add(app);
  parse_and_run(app, words);
}

// Before the ranks know each other, what goes wrong goes wrong on all of them: one speaks. The others let it end first,
// because mpirun kills all that are left when the first one ends.
int fail(const std::string& sentence, ExitCode code) {
  if (rank_hint() > 0) std::this_thread::sleep_for(std::chrono::seconds(1));
  if (rank_hint() == 0) fmt::print(stderr, "antichain: {}\n", sentence);
  return int(code);
}

}  // namespace

int run(int argc, char** argv, const std::vector<NamedModel>& models) {
  try {
    for (const NamedModel& model : models) register_model(model);
    run_command({argv + 1, argv + argc});
    return int(ExitCode::ok);
  } catch (const Error& error) {
    return fail(error.what(), error.code());
  } catch (const std::exception& error) {
    return fail(error.what(), ExitCode::failure);
  }
}

}  // namespace antichain
