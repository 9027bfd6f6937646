#include "pipeline/train/evaluation.h"

#include <algorithm>
#include <cstring>

#include "pipeline/run/plain_copy.h"
#include "pipeline/run/shard_exchange.h"
#include "pipeline/schedule/policy.h"

namespace antichain {

Evaluation::Evaluation(RankModel& model, const Profile& profile, const Plan& plan, const Seat& first,
                       std::shared_ptr<const DataSet> data, Transport& transport, const TrainOptions& options)
    : model_(model),
      transport_(transport),
      options_(options),
      seat_(first),
      schedule_(make_schedule(profile, plan, Policy::forward_only, first.microbatches)),
      runner_(model, profile, plan, schedule_, Mode::evaluate, transport),
      samples_(data, loading(options, model, first, false, {})),
      size_(data->size()),
      means_(model.graph(), model.nodes()) {
  add_up_outputs();
}

// Has the rank that computes the output look at it in each evaluation, beside the targets.
void Evaluation::add_up_outputs() {
  const OutputSums& wanted = options_.output_sums;
  output_sums_.resize(wanted.size);
  if (wanted.size == 0 || !model_.owns(wanted.output)) return;
  runner_.set_watch(
      [this, &wanted, targets = Tensor::host(wanted.targets)](NodeId id, int m, const Tensor& y) {
        if (id != wanted.output) return;
        const int64_t each = y.shape()[0], real = samples_.sampler().real_samples(samples_.position.batch);
        samples_.fill(wanted.target, m, targets);
        const Tensor plain = plain_on_host(model_.context(), y);
        wanted.add({plain.data<float>(), size_t(plain.elements())}, targets,
                   std::clamp<int64_t>(real - m * each, 0, each), output_sums_);
      });
}

std::vector<double> Evaluation::output_sums() const {
  std::vector<double> sums(output_sums_.size());
  if (sums.empty()) return sums;
  Job& job = transport_.job();
  job.activity().doing("telling rank 0 what was added up of the outputs");
  const std::string mine(reinterpret_cast<const char*>(output_sums_.data()),
                         output_sums_.size() * sizeof(double));
  for (const std::string& bytes : job.gather(mine))
    for (size_t i = 0; i < sums.size(); ++i) {
      double part = 0;
      std::memcpy(&part, bytes.data() + i * sizeof part, sizeof part);
      sums[i] += part;
    }
  return sums;
}

// Returns what the means over all of the test set divide by.
const LossMeans::Counts& Evaluation::counts() {
  if (!means_.counting() || !counts_.empty()) return counts_;
  transport_.job().activity().doing("counting what the test loss is a mean over");
  for (int64_t batch = 0; batch < samples_.sampler().batches(); ++batch) {
    samples_.position = {.epoch = 0, .batch = batch};
    LossMeans::add(means_.counts(samples_, seat_.microbatches), counts_);
  }
  return counts_;
}

StepResult Evaluation::run(const std::function<bool()>& goes_on) {
  const StepMeans means = means_.means(counts(), double(size_), options_.batch);
  StepResult sum;
  std::ranges::fill(output_sums_, 0.0);
  int under_way = 0;
  const auto end_oldest = [&] {
    const StepResult part = runner_.finish();
    sum.loss += part.loss;
    sum.correct += part.correct;
    --under_way;
  };
  swap_averages(model_, transport_);
  const int64_t batches = samples_.sampler().batches();
  for (int64_t batch = 0; batch < batches; ++batch) {
    samples_.position = {.epoch = 0, .batch = batch};
    samples_.next.reset();
    if (batch + 1 < batches) samples_.next = BatchPosition{0, batch + 1};
    const int64_t real = samples_.sampler().real_samples(batch);
    runner_.begin({.seed = options_.seed,
                   .batch = options_.batch,
                   .padding = options_.batch - int(real),
                   .means = means},
                  samples_);
    if (++under_way == runner_.steps_at_once()) end_oldest();
    if (!goes_on()) break;
  }
  while (under_way > 0) end_oldest();
  swap_averages(model_, transport_);
  return sum;
}

}  // namespace antichain
