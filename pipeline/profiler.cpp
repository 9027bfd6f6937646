#include "pipeline/profiler.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>

#include "framework/random.h"
#include "pipeline/link_probe.h"
#include "pipeline/runner.h"
#include "pipeline/solo_transport.h"

namespace antichain {
namespace {

// Random images and labels 0, drawn once: what the values are does not change how long they take, unless they are
// denormal, and drawing them is no part of the run.
class RandomSource : public BatchSource {
 public:
  void fill(std::string_view input, int microbatch, const Tensor& out) override {
    if (out.dtype() != DType::f32) return;  // labels stay 0
    Tensor& values = drawn_[std::string(input)];
    if (!values) values = draw(out.spec());
    std::memcpy(out.raw(), values.raw(), size_t(out.bytes()));
  }

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

double median(std::vector<double> samples) {
  if (samples.empty()) return 0;
  const auto middle = samples.begin() + std::ptrdiff_t(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

Plan whole_model(const Profile& network) {
  Plan plan{
      .model = network.model, .graph_hash = network.graph_hash, .method = "whole", .objective = "compute"};
  plan.stages.push_back({.ranks = {0}});
  for (int id = 0; id < int(network.nodes.size()); ++id)
    if (network.nodes[id].role != Role::input) plan.stages[0].nodes.push_back(id);
  return plan;
}

// One model on one rank, stepping; every kernel call is timed.
class Bench {
 public:
  // `activity` is the job's: its watchdog hears of every kernel.
  Bench(const Graph& graph, Context& context, Profile& network, int microbatches, Progress& activity)
      : network_(network),
        plan_(whole_model(network)),
        schedule_(make_schedule(network, plan_, Policy::one_f_one_b, std::min(microbatches, 2))),
        stage_(graph, plan_.stages[0].nodes, context, /*seed=*/0),
        runner_(stage_, network, plan_, schedule_, Mode::train, alone_) {
    runner_.set_clock([this, &activity](NodeId id, Verb verb, int microbatch, double seconds) {
      activity.beat();
      in_nodes_ += seconds;
      // The first micro-batch overwrites gradients; the others, which a run has more of, accumulate.
      if (verb == Verb::step || microbatch == schedule_.microbatches - 1)
        samples_[{id, verb}].push_back(seconds);
    });
  }

  double step() {
    const auto start = std::chrono::steady_clock::now();
    in_nodes_ = 0;
    // Rate 0: the weights stay as they were drawn, so that values can't run away.
    runner_.run({.batch = stage_.graph().microbatch() * schedule_.microbatches, .rate = 0}, source_);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    overhead_.push_back(std::max(0.0, seconds - in_nodes_) / (2 * schedule_.microbatches));
    return seconds;
  }

  void forget() { samples_.clear(), overhead_.clear(); }

  void price() {
    for (const auto& [key, samples] : samples_) {
      NodeCost& cost = network_.nodes[size_t(key.first)].cost;
      const double seconds = median(samples);
      if (key.second == Verb::forward) cost.forward_s = seconds;
      if (key.second == Verb::backward_input) cost.backward_input_s = seconds;
      if (key.second == Verb::backward_weight) cost.backward_weight_s = seconds;
      if (key.second == Verb::step) cost.update_s = seconds;
    }
    network_.overhead_s = median(overhead_);
  }

 private:
  Profile& network_;
  Plan plan_;
  Schedule schedule_;
  SoloTransport alone_;
  Stage stage_;
  StageRunner runner_;
  RandomSource source_;
  double in_nodes_ = 0;
  std::map<std::pair<NodeId, Verb>, std::vector<double>> samples_;
  std::vector<double> overhead_;
};

}  // namespace

Profile measure(const Graph& lowered, Context& context, Transport& job, const MeasureOptions& options) {
  Profile network = unpriced(lowered, context.backend().description());
  network.threads = context.threads();
  network.ranks_at_once = job.local_size();
  job.activity().doing("measuring the model's nodes");
  {
    Bench bench(lowered, context, network, options.microbatches, job.activity());
    job.barrier();
    const double warm_up_s = bench.step();
    bench.forget();
    const int fitting = int(std::clamp(options.budget_s / std::max(warm_up_s, 1e-6), 1.0, 1e6));
    const int repeats = std::stoi(
        job.broadcast(std::to_string(std::clamp(fitting, options.min_repeats, options.max_repeats))));
    job.barrier();
    for (int i = 0; i < repeats; ++i) bench.step();
    bench.price();
  }
  job.activity().doing("measuring the link between neighbouring ranks");
  network.link = measure_link(job);
  return profile_from_json(job.broadcast(job.rank() == 0 ? to_json(network) : ""), "the profile of rank 0");
}

}  // namespace antichain
