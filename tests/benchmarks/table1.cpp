// This measures time and quality of partitioning on PipeDream's ten published profiles, for 4 and 8 devices,
// as Table 1 of the paper does.
//
//   ANTICHAIN_PIPEDREAM_PROFILES=folder build/tests/benchmarks/table1 [--benchmark_min_time=0.1 …]
//
// A time is that of one core reading the file and planning, from text to plan. Of the paper's own method we
// know only the range over its table, 0.01 s to 4.12 s, so ratios are given against both ends.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>

#include "framework/error.h"
#include "framework/json.h"
#include "partition/planners/planner.h"
#include "partition/profile/read_profile.h"

namespace antichain {
namespace {

constexpr std::array models = {"vgg16",     "resnet18",   "resnet50",     "resnet101",   "alexnet",
                               "resnext50", "resnext101", "inception_v3", "densenet121", "squeezenet1_0"};
constexpr int device_counts[] = {4, 8};
constexpr double paper_best_s = 0.01, paper_worst_s = 4.12;
constexpr Link link = {.bytes_per_s = 10e9};

struct Mode {
  const char* name;
  Objective objective;
  bool replicas;
};
constexpr Mode modes[] = {{"compute", Objective::compute, false},
                          {"transfers", Objective::compute_or_transfer, false},
                          {"replicas", Objective::compute, true}};

PlanOptions options_for(const Mode& mode, int devices) {
  return {.stages = devices,
          .cluster = one_link(link),
          .objective = mode.objective,
          .replicas = {.automatic = mode.replicas}};
}

std::string path_of(const std::string& folder, const std::string& model) {
  return folder + "/" + model + ".txt";
}

Profile read(const std::string& path) { return read_profile(read_file(path), path); }

struct Result {
  double ms = 0;  // of one core
  int64_t states = 0;
  bool proved = false;
};

// Keeps what it is told, and prints nothing: tables come after the last run.
class Collector : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs)
      results_[run.benchmark_name()] = {run.GetAdjustedCPUTime(), int64_t(run.counters.at("states")),
                                        run.counters.at("proved") > 0};
  }
  const std::map<std::string, Result>& results() const { return results_; }

 private:
  std::map<std::string, Result> results_;
};

std::string run_name(const std::string& model, int devices, const Mode& mode) {
  return fmt::format("{}/{}/{}", model, devices, mode.name);
}

void add_runs(const std::string& folder) {
  for (const char* model : models)
    for (int devices : device_counts)
      for (const Mode& mode : modes)
        benchmark::RegisterBenchmark(run_name(model, devices, mode).c_str(), [=](benchmark::State& state) {
          Plan plan;
          for (auto _ : state)
            plan = plan_antichain(read(path_of(folder, model)), options_for(mode, devices));
          state.counters["states"] = double(plan.states);
          state.counters["proved"] = plan.proved_optimal();
        })->Unit(benchmark::kMillisecond);
}

void print_times(const Collector& times) {
  fmt::print(
      "Reading and planning with antichain, milliseconds of one core (transfers and all-reduces at {:g} "
      "GB/s; * not "
      "proved\noptimal). The paper's own method takes {:g} to {:g} s over its table; how many times as fast "
      "this is, "
      "compute\nonly, against the one and the other:\n\n",
      link.bytes_per_s / 1e9, paper_best_s, paper_worst_s);
  fmt::print("{:14} {:>7} {:>11} {:>11} {:>11} {:>8} {:>9} {:>9}\n", "model", "devices", modes[0].name,
             modes[1].name, modes[2].name, "states", "to best", "to worst");
  for (const char* model : models)
    for (int devices : device_counts) {
      fmt::print("{:14} {:7}", model, devices);
      for (const Mode& mode : modes) {
        const auto& [ms, states, proved] = times.results().at(run_name(model, devices, mode));
        fmt::print(" {:10.3f}{}", ms, proved ? ' ' : '*');
      }
      const Result& compute = times.results().at(run_name(model, devices, modes[0]));
      fmt::print(" {:8} {:8.2f}x {:8.0f}x\n", compute.states, paper_best_s / (compute.ms / 1e3),
                 paper_worst_s / (compute.ms / 1e3));
    }
}

Plan timed(Planner plan_by, const Profile& profile, const PlanOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  Plan plan = plan_by(profile, options);
  plan.planning_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return plan;
}

// One row per model and number of devices, one column per method; what a method refuses is a dash.
void print_quality(const std::string& folder, const std::vector<std::string>& methods, const Mode& mode,
                   const std::function<double(const Plan&, const Plan& best, const Profile&)>& figure) {
  fmt::print("{:14} {:>7}", "model", "devices");
  for (const std::string& method : methods) fmt::print(" {:>13}", method);
  fmt::print("\n");
  for (const char* model : models)
    for (int devices : device_counts) {
      const Profile profile = read(path_of(folder, model));
      const PlanOptions options = options_for(mode, devices);
      const Plan best = plan_antichain(profile, options);
      fmt::print("{:14} {:7}", model, devices);
      for (const std::string& method : methods) try {
          fmt::print(" {:13.3f}",
                     figure(timed(planner(antichain::method(method)), profile, options), best, profile));
        } catch (const Error&) {
          fmt::print(" {:>13}", "-");
        }
      fmt::print("\n");
    }
}

double relative(const Plan& plan, const Plan& best, const Profile&) {
  return plan.bottleneck_s / best.bottleneck_s;
}

double planning_ms(const Plan& plan, const Plan&, const Profile&) { return plan.planning_s * 1e3; }

double imbalance(const Plan& plan, const Plan&, const Profile& profile) {
  int64_t total = 0, most = 0;
  for (const PlanStage& stage : plan.stages) {
    int64_t work = 0;
    for (int n : stage.nodes) work += work_ns(profile.nodes[n].cost, 1);
    total += work;
    most = std::max(most, work);
  }
  return double(most) * double(plan.stages.size()) / double(total);
}

void print_tables(const std::string& folder, const Collector& times) {
  const std::vector<std::string> straight = {"antichain", "pipedream", "block",  "hashrate",
                                             "cudasize",  "handsplit", "uniform"};
  print_times(times);
  fmt::print(
      "\nSlowest stage over antichain's, compute only, one device a stage (-: the method refuses)\n\n");
  print_quality(folder, straight, modes[0], relative);
  fmt::print("\nPlanning without reading, milliseconds of one run\n\n");
  print_quality(folder, straight, modes[0], planning_ms);
  fmt::print("\nSlowest stage over the mean\n\n");
  print_quality(folder, straight, modes[0], imbalance);
  fmt::print(
      "\nSlowest stage over antichain's with replicas, all-reduce at {:g} GB/s once per 32 micro-batches\n\n",
      link.bytes_per_s / 1e9);
  print_quality(folder, {"antichain", "pipedream", "data-parallel"}, modes[2], relative);
}

}  // namespace
}  // namespace antichain

int main(int argc, char** argv) {
  using namespace antichain;
  benchmark::Initialize(&argc, argv);
  const char* folder = std::getenv("ANTICHAIN_PIPEDREAM_PROFILES");
  for (const char* model : models)
    if (!folder || !std::filesystem::exists(path_of(folder, model))) {
      fmt::print(
          stderr,
          "set ANTICHAIN_PIPEDREAM_PROFILES to a folder with PipeDream's profiles, {}.txt among them\n",
          model);
      return 2;
    }
  Collector times;
  add_runs(folder);
  benchmark::RunSpecifiedBenchmarks(&times);
  print_tables(folder, times);
}
