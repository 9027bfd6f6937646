// antichain experiment speedup turns options into a results folder with a report.
#include "app/experiment/experiment_speedup.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>

#include "app/cli/checks.h"
#include "app/cli/child_process.h"
#include "app/cli/number_text.h"
#include "app/cli/output_file.h"
#include "app/experiment/experiment_commands.h"
#include "app/experiment/experiment_report.h"
#include "framework/error.h"
#include "framework/json.h"
#include "framework/say.h"
#include "pipeline/host/seconds.h"
#include "pipeline/planning/planning.h"

namespace antichain {
namespace {

// Words hold the options as they stand on the command line.
struct Words {
  std::string models, methods = "all", ranks = "1,2,4,8", mode = "simulate",
                      schedule{Policy::one_f_one_b.name}, objective{name_of(default_objective)},
                      overlap_steps = "auto", in_flight;
  std::string out = "antichain-speedup";
};

std::vector<std::string> study_method_names() {
  std::vector<std::string> names;
  for (const StudyMethod& method : study_methods()) names.push_back(method.name);
  return names;
}

SpeedupOptions understood(SpeedupOptions o, const Words& words) {
  const bool own = !o.own.graph.empty();
  if (!own || !words.models.empty())
    o.models = parse_list(words.models.empty() ? "all" : words.models, "--models", paper_models());
  if (own && std::ranges::find(o.models, o.own.model) == o.models.end()) o.models.push_back(o.own.model);
  o.methods = parse_list(words.methods, "--methods", study_method_names());
  for (const std::string& method : o.methods) study_method(method);
  o.ranks = parse_counts(words.ranks, "--ranks", 1024);
  check_launcher(o.launcher);
  o.mode = study_mode(words.mode);
  o.schedule.name = words.schedule;
  o.schedule.in_flight = parse_in_flight(words.in_flight);
  if (!o.schedule.in_flight.empty() && !o.schedule.planned())
    throw Error("--in-flight limits the orders of --schedule auto, but the schedule is " + o.schedule.name,
                "leave it out, or give --schedule auto", ExitCode::usage);
  o.steps_of_ranks = parse_overlap(words.overlap_steps);
  if (o.chunks > 0) check_chunks(o.schedule.policy().placement, o.chunks, o.schedule.name);
  o.objective = objective(words.objective);
  if (const char* folder = std::getenv("ANTICHAIN_PIPEDREAM_PROFILES");
      folder && o.profiles.empty() && o.mode != StudyMode::measure)
    o.profiles = folder;
  if (o.machine.device.starts_with("rehearse:"))
    throw Error("a study rehearses by --mode rehearse, not by --device",
                "leave out --device, or give another", ExitCode::usage);
  if (o.mode == StudyMode::measure && !o.profiles.empty())
    throw Error("measuring trains our own networks, and profiles them under the load of the run",
                "leave out --profiles", ExitCode::usage);
  return o;
}

// Returns what a cell's figures depend on. The same folder may hold cells of other models, ranks, methods and
// modes.
nlohmann::ordered_json settings(const SpeedupOptions& o) {
  nlohmann::ordered_json all = {{"profiles", o.profiles},
                                {"microbatches", o.microbatches},
                                {"microbatch", o.microbatch},
                                {"schedule", o.schedule.name},
                                {"objective", name_of(o.objective)},
                                {"link_bytes_per_s", o.link_bytes_per_s},
                                {"link_latency_s", o.link_latency_s},
                                {"memory_bytes", o.memory_bytes},
                                {"launcher", o.launcher},
                                {"device", o.machine.device},
                                {"threads", o.machine.threads},
                                {"precision", o.precision},
                                {"time_scale", o.time_scale},
                                {"payload", o.payload},
                                {"steps", o.steps},
                                {"epochs", o.epochs},
                                {"train_steps", o.train_steps},
                                {"seed", o.seed},
                                {"dataset", o.dataset},
                                {"data_dir", o.data_dir}};
  if (!o.own.graph.empty()) all["graph"] = graph_hash(o.own.model);
  if (o.chunks > 0) all["chunks"] = o.chunks;
  if (!o.schedule.in_flight.empty()) all["in_flight"] = o.schedule.in_flight;
  if (o.steps_of_ranks == Steps::apart) all["overlap_steps"] = "off";
  return all;
}

void run(const SpeedupOptions& given, const Words& words) {
  const auto start = std::chrono::steady_clock::now();
  const SpeedupOptions options = understood(given, words);
  end_dry_run();
  say_why_cpu(options.machine);
  const ResultsFolder out(words.out, "speedup", settings(options), own_command());
  StopSignals stop;
  // 1. Fill the cells.
  const Sweep result = sweep(options, out, [](const std::string& line) {
    fmt::print("{}\n", line);
    std::fflush(stdout);
  });
  // 2. Write the report.
  const StudyFigures figures = draw_figures(options, out, result.cells);
  const ReportDocument report = speedup_report(options, result, figures);
  write_file(out.path() + "/report.md", report.markdown());
  write_file(out.path() + "/report.html", report.html());
  for (const std::string& sentence : figures.missing) fmt::print("{}\n", sentence);
  const double took_s = seconds_since(start);
  begin_answer();
  fmt::print("\n{}\nReport: {}/report.html, after {:.1f} s\n", speedup_summary(options, result.cells),
             out.path(), took_s);
  if (const std::string doubt = starved_cells(result.cells); !doubt.empty()) warn(doubt);
  if (!result.failures.empty())
    throw Error(fmt::format("{} failed, the first: {}", counted(int64_t(result.failures.size()), "cell"),
                            result.failures.front()),
                "see " + out.path() + "/logs; the same command tries them again", ExitCode::peer_failed);
}

CLI::Option* option(CLI::App& app, const char* name, auto& value, const char* type, const char* group,
                    const std::string& what) {
  return app.add_option(name, value, what)->type_name(type)->group(group);
}

void add_study_options(CLI::App& app, SpeedupOptions& o, Words& words) {
  const char* group = "Study";
  option(app, "--models", words.models, "LIST", group,
         "with commas between them, or all: the paper's ten [all, or with --graph that network alone]");
  add_graph_option(app, nullptr, o.own.graph, o.own.model, o.own.classes)->group(group);
  option(app, "--ranks", words.ranks, "LIST", group, "numbers of ranks")->capture_default_str();
  option(app, "--methods", words.methods, "LIST", group,
         fmt::format("of {}; +replicas leaves replicas to the method", fmt::join(study_method_names(), ", ")))
      ->capture_default_str();
  check_name(option(app, "--mode", words.mode, "NAME", group,
                    "simulate; rehearse: real ranks that wait instead of computing; measure: train"),
             "mode", {"simulate", "rehearse", "measure"})
      ->capture_default_str();
  option(app, "--profiles", o.profiles, "FOLDER", group,
         "MODEL.txt (PipeDream's) or MODEL.json of every model [$ANTICHAIN_PIPEDREAM_PROFILES, else measured "
         "here]");
  check_whole(option(app, "--seed", o.seed, "N", group, "of everything that is drawn"), 0, INT64_MAX)
      ->capture_default_str();
}

void add_step_options(CLI::App& app, SpeedupOptions& o, Words& words) {
  const char* group = "Step";
  check_whole(option(app, "--microbatches", o.microbatches, "N", group, "of a step"), 1, 4096)
      ->capture_default_str();
  check_whole(
      option(app, "--microbatch", o.microbatch, "N", group, "samples in one, of profiles measured here"), 1,
      100'000)
      ->capture_default_str();
  check_name(option(app, "--schedule", words.schedule, "NAME", group,
                    fmt::format("{}", fmt::join(schedule_names(), ", "))),
             "schedule", schedule_names())
      ->capture_default_str();
  check_whole(option(app, "--chunks", o.chunks, "N", group, "stages a rank, as for plan"), 1, 64);
  check_name(option(app, "--overlap-steps", words.overlap_steps, "NAME", group, "as for plan: auto, on, off"),
             "answer", {"auto", "on", "off"})
      ->capture_default_str();
  option(app, "--in-flight", words.in_flight, "LIST", group, "with --schedule auto, as for plan");
  check_name(option(app, "--objective", words.objective, "NAME", group, "what plans make small, as for plan"),
             "objective", objective_names())
      ->capture_default_str();
  check_rate(option(app, "--link-bytes-per-s", o.link_bytes_per_s, "SIZE", group,
                    "bandwidth between ranks, such as 12GB; 0: infinite [the profile's]"),
             1e15);
  check_time(option(app, "--link-latency-s", o.link_latency_s, "TIME", group,
                    "latency between ranks, such as 20us [the profile's]"),
             0, 1e6);
  check_size(option(app, "--memory-bytes", o.memory_bytes, "SIZE", group,
                    "of each device, such as 64GiB; 0: no limit"),
             int64_t(1) << 50)
      ->capture_default_str();
}

void add_run_options(CLI::App& app, SpeedupOptions& o) {
  const char* group = "Runs";
  option(app, "--launcher", o.launcher, "WORDS", group,
         "how to start N ranks, {} being N: \"mpirun -n {}\" [as threads]");
  check_number(option(app, "--time-scale", o.time_scale, "X", group, "of rehearsals [as for rehearse]"), 1e-3,
               1e6);
  check_name(
      option(app, "--payload", o.payload, "NAME", group, "of rehearsals: token or true, as for rehearse"),
      "payload", {"token", "true"})
      ->capture_default_str();
  check_whole(option(app, "--steps", o.steps, "N", group, "of rehearsals"), 1, 1'000'000)
      ->capture_default_str();
  check_whole(option(app, "--epochs", o.epochs, "N", group, "of training"), 1, 100'000)
      ->capture_default_str();
  check_whole(option(app, "--train-steps", o.train_steps, "N", group, "of training, instead of epochs"), 1,
              1'000'000'000);
  option(app, "--dataset", o.dataset, "NAME", group, "of training, as for train")->capture_default_str();
  option(app, "--data-dir", o.data_dir, "DIR", group, "of training, as for train");
  add_dry_run_option(app);
  add_watchdog_option(app, o.machine);
  add_device_option(app, o.machine)->description("of training, and of profiles measured here, as for train");
  add_threads_option(app, o.machine);
  add_precision_option(app, o.precision);
}

}  // namespace

void add_experiment_speedup(CLI::App& experiment) {
  auto options = std::make_shared<SpeedupOptions>();
  auto words = std::make_shared<Words>();
  CLI::App& command = add_command(
      experiment, "speedup", "models by methods on ranks: speedup, balance and bubble, with a report",
      "antichain experiment speedup --profiles profiles --ranks 4,8 --mode rehearse --out study");
  add_study_options(command, *options, *words);
  add_step_options(command, *options, *words);
  add_run_options(command, *options);
  option(command, "--out", words->out, "FOLDER", "Output",
         "the results folder; where it holds a part of the study, that is kept")
      ->capture_default_str();
  command.callback([options, words] { run(*options, *words); });
}

}  // namespace antichain
