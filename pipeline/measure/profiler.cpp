#include "pipeline/measure/profiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>

#include "framework/random.h"
#include "pipeline/host/median.h"
#include "pipeline/host/seconds.h"
#include "pipeline/host/starved_time.h"
#include "pipeline/measure/device_times.h"
#include "pipeline/measure/host_times.h"
#include "pipeline/measure/link_probe.h"
#include "pipeline/run/runner.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/transport/solo_transport.h"

namespace antichain {
namespace {

// A RandomSource gives random images and labels 0, drawn once. Their values do not change the times unless
// they are denormal, and a real run does not draw them.
class RandomSource : public BatchSource {
 public:
  void fill(std::string_view input, int, const Tensor& out) override {
    if (out.dtype() != DType::f32) {
      std::memset(out.raw(), 0, size_t(out.bytes()));  // page-locked memory is uninitialised
      return;
    }
    Tensor& values = drawn_[std::string(input)];
    if (!values) values = draw(out.spec());
    std::memcpy(out.raw(), values.raw(), size_t(out.bytes()));
  }
  bool expects_more() const override {
    return true;
  }  // as in training: a device copies the next step's samples during this one
  void fill_next(std::string_view input, int microbatch, const Tensor& out) override {
    fill(input, microbatch, out);
  }
  bool is_expected() const override { return true; }

 private:
  static Tensor draw(const TensorSpec& spec) {
    const Tensor values = Tensor::host(spec);
    const Philox random(0);
    for (int64_t i = 0; i < values.elements(); ++i)
      values.data<float>()[i] = 2 * Philox::uniform(random.words(uint64_t(i))[0]) - 1;
    return values;
  }
  std::map<std::string, Tensor> drawn_;
};

Plan whole_model(const Profile& profile) {
  Plan plan{.model = profile.model,
            .graph_hash = profile.graph_hash,
            .method = "whole",
            .objective = Objective::compute};
  plan.stages.push_back({.ranks = {0}});
  for (int id = 0; id < int(profile.nodes.size()); ++id)
    if (profile.nodes[id].role != Role::input) plan.stages[0].nodes.push_back(id);
  return plan;
}

// A Bench runs steps of one model on one rank.
class Bench {
 public:
  Bench(const Graph& graph, const std::shared_ptr<const Optimiser>& optimiser, Context& context,
        const Profile& profile, int microbatches, const Policy& policy = Policy::one_f_one_b)
      : plan_(whole_model(profile)),
        schedule_(make_schedule(profile, plan_, policy, microbatches)),
        model_(graph, plan_.stages[0].nodes, context, /*seed=*/0, optimiser),
        runner_(model_, profile, plan_, schedule_, Mode::train, alone_) {}

  StageRunner& runner() { return runner_; }
  int microbatches() const { return schedule_.microbatches; }

  struct Step {
    double seconds = 0;
    std::vector<Event> events;
  };
  Step step(bool traced = false) {
    const auto start = std::chrono::steady_clock::now();
    // The rate is 0, so that the weights stay as drawn and no value overflows.
    StepResult result = runner_.run(
        {.batch = model_.graph().microbatch() * microbatches(), .rate = 0, .traced = traced}, source_);
    return {seconds_since(start), std::move(result.events)};
  }

 private:
  Plan plan_;
  Schedule schedule_;
  SoloTransport alone_;
  RankModel model_;
  StageRunner runner_;
  RandomSource source_;
};

// Returns how many rounds of `round_s` fit. All ranks use rank 0's answer, so that all measure equally long.
int repeats(Job& job, const MeasureOptions& options, double round_s) {
  return std::stoi(job.broadcast(
      std::to_string(fitting_repeats(options.budget_s, round_s, options.min_repeats, options.max_repeats))));
}

// Telling reports the progress of the measurement to its caller. The progress never goes back, although
// weight halves come after all input halves of a micro-batch.
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

// Calls are the figures of steps of one kind, measured in host memory.
struct Calls {
  HostTimes times;
  double overhead_s = 0;              // of an action, besides its nodes
  double seconds = 0, starved_s = 0;  // of all measured steps
  int steps = 0;
};

// Times the calls of a policy's steps: of as many as `steps` says, or, where it is 0, as half of the budget
// allows. `before` steps were done by a former call.
Calls time_calls(const Graph& graph, Context& context, const Profile& profile, Job& job,
                 const MeasureOptions& options, const Policy& policy, Telling& telling, int before,
                 int steps) {
  Bench bench(graph, options.optimiser, context, profile,
              profiled_microbatches(context.backend(), options.microbatches), policy);
  std::map<std::pair<NodeId, Verb>, std::vector<double>> samples;
  std::vector<double> overhead;
  std::map<std::pair<NodeId, Verb>, double> step_s;
  double explained_s = 0;  // of a step: its nodes, and the clock
  int done = before;
  bench.runner().set_clock([&](NodeId id, Verb verb, int microbatch, double seconds) {
    if (id == no_node) return;
    const double heard_s = now_s();
    job.activity().beat();
    if (verb != Verb::update)
      telling.tell(
          done + share_of_step(id, verb == Verb::forward, microbatch, graph.size(), bench.microbatches()),
          graph[id].name);
    // The first micro-batch overwrites gradients. The others accumulate, and a run has more of them.
    if (verb == Verb::update || microbatch == bench.microbatches() - 1) step_s[{id, verb}] += seconds;
    explained_s += seconds + now_s() - heard_s;
  });
  job.barrier();
  const double warm_up_s = bench.step().seconds;
  Calls calls{.steps = steps > 0 ? steps : repeats(job, options, 2 * warm_up_s)};
  telling.of_all(2 * (1 + calls.steps));
  job.barrier();
  const StarvedTime starved;
  for (done = before + 1; done <= before + calls.steps; ++done) {
    explained_s = 0;
    step_s.clear();
    const double seconds = bench.step().seconds;
    calls.seconds += seconds;
    overhead.push_back(std::max(0.0, seconds - explained_s) / (2 * bench.microbatches()));
    for (const auto& [key, node_s] : step_s) samples[key].push_back(node_s);
  }
  calls.starved_s = starved.seconds();
  calls.overhead_s = median(overhead);
  for (const auto& [key, seconds] : samples) calls.times.node_s[key] = median(seconds);
  return calls;
}

// Steps with whole backwards are followed by as many with parted ones.
void measure_calls(const Graph& graph, Context& context, Profile& profile, Job& job,
                   const MeasureOptions& options) {
  Telling telling(options);
  const Calls whole = time_calls(graph, context, profile, job, options, Policy::one_f_one_b, telling, 0, 0);
  const Calls parted = time_calls(graph, context, profile, job, options, policy("zb-h1"), telling,
                                  1 + whole.steps, whole.steps);
  price(profile, whole.times, parted.times);
  profile.overhead_s = whole.overhead_s;
  const double share = largest(job, (whole.starved_s + parted.starved_s) / (whole.seconds + parted.seconds));
  if (options.starved_share) *options.starved_share = share;
}

// On a device the call only starts the work: see pipeline/measure/device_times.h.
void measure_device(const Graph& graph, Context& context, Profile& profile, Job& job,
                    const MeasureOptions& options) {
  constexpr int warm_ups = 3, kinds = 5;  // a step with a clock takes about as long as three
  Bench bench(graph, options.optimiser, context, profile,
              profiled_microbatches(context.backend(), options.microbatches));
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
  const Plan plan = whole_model(profile);
  const auto need = [&](const Policy& policy) {
    const Schedule schedule = make_schedule(profile, plan, policy, profiled_microbatches(device, of_run));
    return step_need(lowered, optimiser, profile, plan, schedule, 0);
  };
  const MemoryNeed whole = need(Policy::one_f_one_b);
  if (!device.host_memory()) return whole;
  const MemoryNeed parted = need(policy("zb-h1"));
  return parted.activations > whole.activations ? parted : whole;
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
