// A sweep fills the cells one after the other. Planning and simulation happen in this process. Rehearsals and
// training are child processes, so a rank's failure leaves the sweep and its finished cells intact.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "app/cli/child_process.h"
#include "app/cli/number_text.h"
#include "app/experiment/experiment_speedup.h"
#include "app/report/plan_figures.h"
#include "framework/error.h"
#include "framework/json.h"
#include "framework/paths.h"
#include "partition/profile/read_profile.h"
#include "pipeline/planning/planning.h"
#include "pipeline/simulate/simulate.h"

namespace antichain {
namespace {

namespace fs = std::filesystem;

// A child process failed, so the cell stays open.
struct ChildFailed {
  std::string sentence;
};

// Returns an Error's sentence (framework/error.h) without its hint, because a table has no room for it.
std::string sentence_of(const Error& error) {
  const std::string sentence = error.what();
  return sentence.substr(0, sentence.find(": "));
}

// Returns the options of the commands that compute: profile and train.
std::vector<std::string> computing_options(const SpeedupOptions& o) {
  return {"--device",    o.machine.device, "--threads", std::to_string(o.machine.threads),
          "--precision", o.precision};
}

class CellMaker {
 public:
  CellMaker(const SpeedupOptions& o, const ResultsFolder& out, const StudyNetwork& network)
      : o_(o), out_(out), network_(network), profile_(network.profile) {}

  Cell make(const CellKey& key) {
    Cell cell{.key = key};
    const StudyMethod& method = study_method(key.method);
    const PlanOptions options = plan_options(o_, profile_, method, key.ranks);
    Plan plan;
    try {
      plan = o_.schedule.plan(profile_, options, method.planner);
    } catch (const Error& error) {
      if (error.code() == ExitCode::failure) throw;
      cell.refusal = sentence_of(error);
      return cell;
    }
    write_file(plan_file(key), to_json(plan, profile_));
    predict(cell, plan, options);
    // What is measured is rehearsed as well, which separates the runtime's overhead from computing.
    if (key.mode != StudyMode::simulate) rehearse(cell);
    if (key.mode == StudyMode::measure && cell.refusal.empty()) train(cell);
    return cell;
  }

 private:
  std::string plan_file(const CellKey& key) const { return out_.file("plans", key.name() + ".json"); }
  // Child processes take the order that was searched with the plan, instead of searching it again.
  std::string schedule_file(const CellKey& key) const {
    return out_.file("plans", key.name() + planned_schedule_ending);
  }

  void predict(Cell& cell, const Plan& plan, const PlanOptions& options) const {
    const Schedule schedule = o_.schedule.schedule(profile_, plan, options);
    if (o_.schedule.planned()) write_file(schedule_file(cell.key), print(schedule));
    const Timeline timeline = simulate(schedule, plan, profile_, options.cluster, options.steps);
    const PlanFigures all = figures(plan, profile_, options);
    cell.microbatch = profile_.microbatch;
    cell.microbatches = o_.microbatches;
    cell.plan_hash = plan_hash(plan);
    cell.stages = stages_in_short(plan);
    cell.planning_s = plan.planning_s;
    cell.one_device_s = one_device_step_s(profile_, o_.microbatches);
    cell.slowest_s = all.slowest_s();
    cell.imbalance = all.imbalance();
    cell.boundary_bytes = all.boundary_bytes();
    cell.memory_bytes = all.memory_bytes();
    cell.predicted = {timeline.period_s, timeline.bubble_fraction(), timeline.busy_s};
  }

  // Returns the name of a file that a child process writes for the cell in this mode.
  std::string file(const Cell& cell, StudyMode mode, const char* folder, const char* ending) const {
    CellKey key = cell.key;
    key.mode = mode;
    return out_.file(folder, key.name() + ending);
  }

  // Runs this program on the cell's ranks and returns its JSON result.
  nlohmann::json run(const Cell& cell, StudyMode mode, std::vector<std::string> words) const {
    const std::string json_file = file(cell, mode, "work", ".json");
    const std::string log = file(cell, mode, "logs", ".log");
    std::error_code not_there;
    fs::remove(json_file, not_there);
    words.insert(words.end(), {"--plan", plan_file(cell.key), "--profile", network_.profile_file,
                               "--microbatches", std::to_string(o_.microbatches), "--schedule",
                               o_.schedule.planned() ? schedule_file(cell.key) : o_.schedule.name,
                               "--overlap-steps", o_.steps_of_ranks == Steps::overlapped ? "auto" : "off",
                               "--watchdog", fmt::format("{}", o_.machine.watchdog_s), "--json", json_file});
    const int code = run_child(launch(o_.launcher, cell.key.ranks, words), log);
    if (StopSignals::requested()) throw Error("stopped", "", ExitCode::stopped);
    if (code == int(ExitCode::usage)) return {{"refusal", last_words(log)}};
    if (code != 0 || !exists(json_file))
      throw ChildFailed{fmt::format("{} ended with code {}: {}", cell.key.name(), code, last_words(log))};
    return parse_json(read_file(json_file), json_file);
  }

  void rehearse(Cell& cell) const {
    std::vector<std::string> words = {"rehearse", "--payload", o_.payload, "--steps",
                                      std::to_string(o_.steps)};
    for (const auto& [name, value] :
         {std::pair{"--link-bytes-per-s", o_.link_bytes_per_s}, {"--link-latency-s", o_.link_latency_s}})
      if (value >= 0) words.insert(words.end(), {name, fmt::format("{}", value)});
    if (o_.time_scale > 0) words.insert(words.end(), {"--time-scale", fmt::format("{}", o_.time_scale)});
    words.insert(words.end(), {"--trace", file(cell, StudyMode::rehearse, "work", ".trace.json")});
    const nlohmann::json json = run(cell, StudyMode::rehearse, words);
    if (refused(cell, json)) return;
    cell.time_scale = json.at("time_scale").get<double>();
    cell.rehearsed = {json.at("rehearsed_period_s").get<double>(),
                      json.at("rehearsed_bubble_share").get<double>(),
                      json.at("rehearsed_busy_s").get<std::vector<double>>()};
  }

  void train(Cell& cell) const {
    const std::string metrics = file(cell, StudyMode::measure, "work", ".metrics");
    std::vector<std::string> words = {"train",
                                      "--batch",
                                      std::to_string(profile_.microbatch * o_.microbatches),
                                      "--dataset",
                                      o_.dataset,
                                      "--seed",
                                      std::to_string(o_.seed),
                                      "--metrics",
                                      metrics,
                                      "--trace",
                                      file(cell, StudyMode::measure, "work", ".trace.json")};
    for (const std::vector<std::string>& more : {words_for(o_.own, cell.key.model), computing_options(o_)})
      words.insert(words.end(), more.begin(), more.end());
    if (!o_.data_dir.empty()) words.insert(words.end(), {"--data-dir", o_.data_dir});
    if (o_.train_steps > 0)
      words.insert(words.end(), {"--steps", std::to_string(o_.train_steps)});
    else
      words.insert(words.end(), {"--epochs", std::to_string(o_.epochs)});
    const nlohmann::json json = run(cell, StudyMode::measure, words);
    if (refused(cell, json)) return;
    cell.measured = TrainedFigures{.step_s = json.at("measured_step_s").get<double>(),
                                   .steps = json.at("steps").get<int64_t>(),
                                   .data = json.at("data").get<std::string>(),
                                   .loss = losses(metrics),
                                   .starved_share = json.at("starved_share").get<double>()};
    if (json.contains("final_test_accuracy"))
      cell.measured->test_accuracy = json.at("final_test_accuracy").get<double>();
  }

  static bool refused(Cell& cell, const nlohmann::json& json) {
    if (!json.contains("refusal")) return false;
    cell = Cell{.key = cell.key, .refusal = json.at("refusal").get<std::string>()};
    return true;
  }

  // Keeps at most some hundreds of points: a curve needs no more.
  static std::vector<std::pair<int64_t, double>> losses(const std::string& metrics) {
    constexpr size_t most = 400;
    std::vector<std::pair<int64_t, double>> all, thin;
    std::ifstream in(metrics);
    for (std::string line; std::getline(in, line);) {
      const nlohmann::json json = parse_json(line, metrics);
      if (json.contains("loss") && json.contains("step"))
        all.push_back({json["step"].get<int64_t>(), json["loss"].get<double>()});
    }
    const size_t every = all.size() / most + 1;
    for (size_t i = 0; i < all.size(); i += every) thin.push_back(all[i]);
    return thin;
  }

  const SpeedupOptions& o_;
  const ResultsFolder& out_;
  const StudyNetwork& network_;
  const Profile& profile_;
};

std::string progress(const std::vector<Cell>& cells, const Cell& cell, size_t number, size_t of) {
  const std::string head =
      fmt::format("[{}/{}] {} on {} by {}", number, of, cell.key.model, cell.key.ranks, cell.key.method);
  if (!cell.refusal.empty()) return head + ": " + cell.refusal;
  // A measured step's speedup is relative to another measured step, as in the report. As long as there is
  // none, the line shows the step itself.
  const bool comparable = !cell.measured || one_rank_of(cells, cell);
  const std::string speed =
      comparable ? fmt::format("{} {:.2f} times one rank", participle(cell.key.mode), speedup(cells, cell))
                 : fmt::format("{} {} ms a step", participle(cell.key.mode), milliseconds(cell.step_s()));
  if (cell.key.mode == StudyMode::simulate) return head + ": " + speed;
  const std::string doubt = starved(cell) ? fmt::format("; without a core for {} % of the time",
                                                        percent(cell.measured->starved_share))
                                          : "";
  return fmt::format("{}: {}; {:+.1f} % from predicted{}", head, speed,
                     (cell.step_s() / cell.predicted.step_s - 1) * 100, doubt);
}

}  // namespace

StudyNetwork study_network(const SpeedupOptions& o, const ResultsFolder& out, const std::string& model,
                           int ranks) {
  ProfileSource source{.given = o.profiles,
                       .cache = out.path() + "/profiles",
                       .microbatch = o.microbatch,
                       .options = computing_options(o),
                       .own = o.own};
  if (o.mode == StudyMode::measure) {  // under the load of the run
    source.launcher = o.launcher;
    source.ranks = ranks;
  }
  StudyNetwork network{.profile_file = profile_file(source, model)};
  network.profile = read_profile(read_file(network.profile_file), network.profile_file);
  return network;
}

PlanOptions plan_options(const SpeedupOptions& o, const Profile& profile, const StudyMethod& method,
                         int ranks) {
  Link link = profile.link;
  if (o.link_bytes_per_s >= 0) link.bytes_per_s = o.link_bytes_per_s;
  if (o.link_latency_s >= 0) link.latency_s = o.link_latency_s;
  return {.stages = ranks,
          .chunks = o.chunks > 0 ? o.chunks : default_chunks(o.schedule.policy().placement),
          .cluster = o.memory_bytes > 0 ? equal_devices(ranks, link, o.memory_bytes) : one_link(link),
          .objective = o.objective,
          .replicas = {.automatic = method.kind != StudyMethod::Kind::straight},
          .microbatches = o.microbatches,
          .steps = o.steps_of_ranks};
}

Sweep sweep(const SpeedupOptions& o, const ResultsFolder& out,
            const std::function<void(const std::string&)>& say) {
  Sweep result;
  const size_t all = o.models.size() * o.ranks.size() * o.methods.size();
  size_t number = 0, done = 0;
  for (const std::string& model : o.models)
    for (const int ranks : o.ranks) {
      std::unique_ptr<StudyNetwork> network;  // read or measured when a cell first needs it
      for (const std::string& method : o.methods) {
        const CellKey key{model, method, ranks, o.mode};
        const std::string file = out.file("cells", key.name() + ".json");
        ++number;
        if (exists(file)) {
          result.cells.push_back(cell_from_json(read_file(file), file));
          ++done;
          continue;
        }
        try {
          if (StopSignals::requested()) throw Error("stopped", "", ExitCode::stopped);
          if (!network) network = std::make_unique<StudyNetwork>(study_network(o, out, model, ranks));
          result.cells.push_back(CellMaker(o, out, *network).make(key));
          write_file(file, to_json(result.cells.back()));
          say(progress(result.cells, result.cells.back(), number, all));
          ++done;
        } catch (const ChildFailed& failed) {
          result.failures.push_back(failed.sentence);
          say(fmt::format("[{}/{}] {}", number, all, failed.sentence));
        } catch (const Error& error) {
          if (error.code() != ExitCode::stopped) throw;
          throw Error(
              fmt::format("stopped with {} of {} cells done, which are kept in {}", done, all, out.path()),
              "the same command goes on", ExitCode::stopped);
        }
      }
    }
  return result;
}

}  // namespace antichain
