#include "pipeline/measure/profiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "pipeline/host/core_time.h"
#include "pipeline/host/median.h"
#include "pipeline/host/seconds.h"
#include "pipeline/measure/bench.h"
#include "pipeline/measure/device_times.h"
#include "pipeline/measure/host_times.h"
#include "pipeline/measure/link_probe.h"

namespace antichain {
namespace {

// Returns how many rounds of `round_s` fit. All ranks use rank 0's answer, so that all measure equally long.
int repeats(Job& job, const MeasureOptions& options, double round_s) {
  return std::stoi(job.broadcast(
      std::to_string(fitting_repeats(options.budget_s, round_s, options.min_repeats, options.max_repeats))));
}

// Telling reports the progress of the measurement to its caller. The progress never goes back, although
// parted backwards come after the forwards of all micro-batches.
class Telling {
 public:
  explicit Telling(const MeasureOptions& options) : options_(options) {}
  void of_all(double steps) { all_ = steps; }
  // Reports after so many steps, in this node.
  void tell(double steps, std::string_view node) {
    if (!options_.progress) return;
    MeasureProgress progress = progress_after(
        steps, all_, now_s() - begin_s_, {options_.budget_s, options_.min_repeats, options_.max_repeats});
    progress.node = node;
    progress.share = share_ = std::max(share_, progress.share);
    options_.progress(progress);
  }

 private:
  const MeasureOptions& options_;
  double begin_s_ = now_s(), all_ = 0, share_ = 0;
};

// Returns the largest value on rank 0. Ranks without a value pass 0.
double largest(Job& job, double mine) {
  double most = 0;
  for (const std::string& text : job.gather(fmt::format("{}", mine))) most = std::max(most, std::stod(text));
  return most;
}

// TimedCalls times the calls of steps of one kind, in host memory.
class TimedCalls {
 public:
  // Tells in which node the step is and how much of the step is done.
  using Told = std::function<void(const std::string& node, double share)>;

  TimedCalls(RankModel& model, const Profile& profile, const Plan& plan, Schedule schedule, Told told)
      : bench_(model, profile, plan, std::move(schedule)) {
    bench_.runner().set_clock([this, &graph = model.graph(), told = std::move(told)](
                                  NodeId id, Verb verb, int microbatch, double seconds) {
      if (id == no_node) return;
      const double heard_s = now_s();
      const int last = bench_.microbatches() - 1;
      if (verb != Verb::update)
        told(graph[id].name,
             share_of_step(id, verb == Verb::forward, microbatch, graph.size(), bench_.microbatches()));
      // The first micro-batch overwrites gradients. The others accumulate, and a run has more of them.
      if (verb == Verb::update || microbatch == last) step_s_[{id, verb}] += seconds;
      explained_s_ += seconds + now_s() - heard_s;
    });
  }

  double warm_up() { return bench_.step().seconds; }
  // Measures a step, and returns how long it took.
  double step() {
    explained_s_ = 0;
    step_s_.clear();
    const double seconds = bench_.step().seconds;
    overhead_.push_back(std::max(0.0, seconds - explained_s_) / (2 * bench_.microbatches()));
    for (const auto& [key, node_s] : step_s_) samples_[key].push_back(node_s);
    return seconds;
  }

  double overhead_s() const { return median(overhead_); }  // of an action, besides its nodes
  HostTimes times() const {
    HostTimes times;
    for (const auto& [key, seconds] : samples_) times.node_s[key] = median(seconds);
    return times;
  }

 private:
  Bench bench_;
  std::map<std::pair<NodeId, Verb>, double> step_s_;
  std::map<std::pair<NodeId, Verb>, std::vector<double>> samples_;
  std::vector<double> overhead_;
  double explained_s_ = 0;  // of a step: its nodes, and the clock
};

// Steps with whole backwards and steps with parted ones take turns, because a machine is faster at times and
// slower at others, which must not look like a difference between the two.
void measure_calls(const Graph& graph, Context& context, Profile& profile, Job& job,
                   const MeasureOptions& options) {
  const Plan plan = one_stage(profile);
  RankModel model(graph, plan.stages[0].nodes, context, /*seed=*/0, options.optimiser);
  Telling telling(options);
  int done = 0;
  const auto told = [&](const std::string& node, double share) {
    job.activity().beat();
    telling.tell(done + share, node);
  };
  const int microbatches = profiled_microbatches(context.backend(), options.microbatches);
  TimedCalls whole(model, profile, plan, whole_backwards(profile, plan, microbatches), told);
  TimedCalls parted(model, profile, plan, parted_backwards(profile, plan, microbatches), told);
  job.barrier();
  double warm_up_s = whole.warm_up();
  ++done;
  warm_up_s += parted.warm_up();
  const int steps = repeats(job, options, warm_up_s);
  telling.of_all(2 * (1 + steps));
  double all_s = 0;
  job.barrier();
  const StarvedTime starved;
  for (int i = 0; i < steps; ++i)
    for (TimedCalls* kind : {&whole, &parted}) {
      ++done;
      all_s += kind->step();
    }
  const double share = largest(job, starved.seconds() / all_s);
  if (options.starved_share) *options.starved_share = share;
  price(profile, whole.times(), parted.times());
  profile.overhead_s = whole.overhead_s();
}

// On a device the call only starts the work: see pipeline/measure/device_times.h.
void measure_device(const Graph& graph, Context& context, Profile& profile, Job& job,
                    const MeasureOptions& options) {
  constexpr int warm_ups = 3, kinds = 5;  // a step with a clock takes about as long as three
  const Plan plan = one_stage(profile);
  RankModel model(graph, plan.stages[0].nodes, context, /*seed=*/0, options.optimiser);
  Bench bench(model, profile, plan,
              whole_backwards(profile, plan, profiled_microbatches(context.backend(), options.microbatches)));
  // Numbers are checked as in training, where steps continue without waiting for the result.
  bench.runner().set_judge([](const NumberReport&) { return true; }, /*decides=*/false);
  DeviceTimes times(bench.microbatches());
  Telling telling(options);
  double steps = 0;  // a step with a clock counts as three
  const auto step = [&](bool traced = false, bool clocked = false) {
    job.activity().beat();
    telling.tell(steps, clocked ? "the nodes" : "whole steps");
    steps += clocked ? kinds - 2 : 1;
    return bench.step(traced);
  };
  job.barrier();
  double warm_up_s = 0;
  for (int i = 0; i < warm_ups; ++i) warm_up_s = step().seconds;
  const int count = repeats(job, options, kinds * warm_up_s);
  telling.of_all(warm_ups + kinds * count + kinds - 2);
  job.barrier();
  for (int i = 0; i < count; ++i) {
    times.add_plain(step().seconds);
    times.add_traced(step(/*traced=*/true).events);
  }
  bench.runner().set_clock(
      [&](NodeId id, Verb verb, int, double seconds) { times.add_node(id, verb, seconds); });
  step(/*traced=*/false, /*clocked=*/true);
  times.forget_nodes();
  for (int i = 0; i < count; ++i) {
    step(/*traced=*/false, /*clocked=*/true);
    times.end_of_nodes();
  }
  times.price(profile);
}

}  // namespace

int profiled_microbatches(const Backend& device, int of_run) {
  return std::min(of_run, device.host_memory() ? 2 : 8);
}

MemoryNeed profiling_need(const Graph& lowered, const Optimiser& optimiser, const Backend& device,
                          int of_run) {
  const Profile profile = unpriced(lowered, "", optimiser);
  const Plan plan = one_stage(profile);
  const int microbatches = profiled_microbatches(device, of_run);
  const auto need = [&](const Schedule& schedule) {
    return step_need(lowered, optimiser, profile, plan, schedule, 0);
  };
  MemoryNeed all = need(whole_backwards(profile, plan, microbatches));
  if (!device.host_memory()) return all;
  const MemoryShares parted = need(parted_backwards(profile, plan, microbatches)).step;
  all.step.kept += parted.kept, all.step.working += parted.working;
  return all;
}

Profile measure(const Graph& lowered, Context& context, Transport& transport, const MeasureOptions& options) {
  Job& job = transport.job();
  Profile profile = unpriced(lowered, context.backend().description(), *options.optimiser);
  profile.threads = context.threads();
  profile.ranks_at_once = job.local_size();
  job.activity().doing("measuring the model's nodes");
  const auto measure_nodes = context.backend().host_memory() ? measure_calls : measure_device;
  measure_nodes(lowered, context, profile, job, options);
  job.activity().doing("measuring the link between neighbouring ranks");
  profile.link = measure_link(transport, context);
  return profile_from_json(job.broadcast(job.rank() == 0 ? to_json(profile) : ""), "the profile of rank 0");
}

}  // namespace antichain
