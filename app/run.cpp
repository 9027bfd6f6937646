#include "app/run.h"

#include <fmt/format.h>
#include <malloc.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <limits>
#include <new>
#include <string>
#include <system_error>
#include <thread>

#include "app/cli/commands.h"
#include "app/cli/help.h"
#include "app/cli/output_file.h"
#include "app/cli/terminal.h"
#include "app/job/job_log.h"
#include "framework/error.h"
#include "framework/say.h"
#include "framework/version.h"
#include "layers/cpu/backend.h"
#include "pipeline/host/host_memory.h"
#include "pipeline/host/launch.h"

namespace antichain {
namespace {

// The user's own program has a name of its own, which help and hints show.
std::string name_of_program(const char* started_as) {
  const std::string name = std::filesystem::path(started_as).filename();
  return name.empty() ? "antichain" : name;
}

// The experiments of the publication are in the Python package (app/python/antichain/experiments).
void refuse_experiment(const std::vector<std::string>& words) {
  if (words.empty() || words[0] != "experiment") return;
  const std::string rest = shell_words({words.begin() + 1, words.end()});
  throw Error("experiments are in the Python package",
              "start python3 -m antichain.experiments" + (rest.empty() ? "" : " " + rest), ExitCode::usage);
}

void run_command(const std::string& name, const std::vector<std::string>& words) {
  register_cpu_backend();
  CLI::App app("Profile, plan, and train a neural network as a pipeline.", name);
  app.formatter(help_formatter());
  app.set_help_all_flag("--help-all");
  app.footer(
      "Example\n"
      "  antichain profile  --model resnet18 --json profile.json\n"
      "  antichain plan     --profile profile.json --stages 4 --json plan.json\n"
      "  antichain simulate --profile profile.json --plan plan.json --microbatches 8\n"
      "  antichain train    --model resnet18 --profile profile.json --plan plan.json --local 4");
  app.set_version_flag("--version", version());
  app.require_subcommand(1);
  for (const auto add : {add_info, add_profile, add_plan, add_simulate, add_rehearse, add_train, add_doctor,
                         add_export, add_evaluate, add_generate, add_gradients, add_check, add_data,
                         add_compare, add_citations, add_reference})
    add(app);
  refuse_experiment(words);
  parse_and_run(app, words);
}

constexpr const char* out_of_memory_sentence =
    "there is no memory left: use a smaller --batch, more --microbatches, or more ranks";

// Before the ranks are connected, errors mostly occur on all of them. So rank 0 prints, and mpirun ends the
// others with it. A rank that still exists after a while has an error of its own, such as a file that is
// missing on its host.
int fail(const std::string& sentence, ExitCode code) {
  const int rank = rank_hint();
  if (rank > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5000 + 100 * std::min(rank, 20)));
  say(Tone::error, rank > 0 ? fmt::format("rank {} on {}: {}", rank, host_name(), sentence) : sentence);
  return int(code);
}

int lost_output(const std::string& reason) {
  say(Tone::error, fmt::format("what was printed on standard output is lost ({}): all else is done; name "
                               "files with --json or --metrics instead",
                               reason));
  return int(ExitCode::bad_input);
}

}  // namespace

int run(int argc, char** argv, const std::vector<NamedModel>& models) {
  StandardStreams streams;
  shape_sentences(&shaped);
  // Freed memory goes back to the system from 8 MiB on. oneDNN's products of matrices allocate up to 4 MiB in
  // each call, and these stay with the process, because fresh pages take longer than a small product.
  ::mallopt(M_MMAP_THRESHOLD, 8 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 16 << 20);
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond ulimit -f is an error like any other
  try {
    if (address_space_bytes() < std::numeric_limits<int64_t>::max())
      ::mallopt(M_ARENA_MAX, 1);  // 64 MiB each
    check_address_space(1);
    for (const NamedModel& model : models) register_model(model);
    run_command(name_of_program(argc > 0 ? argv[0] : ""), {argv + 1, argv + argc});
    const std::string reason = streams.lost();
    return reason.empty() ? int(ExitCode::ok) : lost_output(reason);
  } catch (const Error& error) {
    return fail(error.what(), error.code());
  } catch (const std::filesystem::filesystem_error& error) {
    return fail(fmt::format("can't use {}: {}", error.path1().string(), error.code().message()),
                ExitCode::bad_input);
  } catch (const std::bad_alloc&) {
    return fail(out_of_memory_sentence, ExitCode::out_of_memory);
  } catch (const std::system_error& error) {
    const Error limits = beyond_limits(error);
    return fail(limits.what(), limits.code());
  } catch (const std::exception& error) {
    return fail(error.what(), ExitCode::failure);
  }
}

}  // namespace antichain
