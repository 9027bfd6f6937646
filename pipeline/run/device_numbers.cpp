#include "pipeline/run/device_numbers.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "framework/error.h"
#include "pipeline/run/weighted_loss.h"

namespace antichain {

// A Gathering collects the tensors of one look, and the place that each stands for. Looks get their marks one
// after the other.
class DeviceNumbers::Gathering {
 public:
  Gathering(DeviceNumbers& all, int& marks, bool bad) : all_(all), marks_(marks) { look_.bad = bad; }
  void add(const Tensor& tensor, NonFinite place) {
    place.rank = all_.place_.rank;
    tensors_.push_back(tensor);
    look_.places.push_back(place);
  }
  Look done() {
    look_.at = all_.device_.looked_at(tensors_);
    look_.first = std::exchange(marks_, marks_ + int(tensors_.size()));
    return std::move(look_);
  }

 private:
  DeviceNumbers& all_;
  int& marks_;
  Look look_;
  std::vector<Tensor> tensors_;
};

DeviceNumbers::DeviceNumbers(DeviceStep& step, CopyStream& copies, RankModel& model, WatchedRank rank)
    : device_(step), copies_(copies), model_(model), place_(std::move(rank)) {
  lay_out_losses();
}

void DeviceNumbers::lay_out_losses() {
  int64_t bytes = 0;
  for (const NodeId id : model_.nodes()) {
    if (model_.graph()[id].role() != Role::loss) continue;
    for (int m = 0; m < place_.microbatches; ++m) {
      loss_at_[id].push_back(bytes);
      bytes += model_.graph()[id].output().bytes();
    }
  }
  if (bytes == 0) return;
  const TensorSpec spec{{bytes / int64_t(sizeof(float))}};
  losses_ = model_.context().backend().tensor(spec);
  for (Outcome& outcome : outcomes_) outcome.losses = Tensor(spec, copies_.page_locked(bytes));
}

DeviceNumbers::Look DeviceNumbers::at_statistics(const WatchedStage& own, int m, int& marks) {
  Gathering found(*this, marks, true);
  for (const auto& [id, parts] : own.memory->tensors().statistics)
    for (const Tensor& tensor : own.memory->statistics(id, m))
      found.add(tensor, {.microbatch = m, .node = id, .what = NonFinite::What::statistics});
  return found.done();
}

DeviceNumbers::Look DeviceNumbers::at_outputs(const WatchedStage& own, int m, int& marks) {
  Gathering found(*this, marks, false);
  for (const NodeId id : own.sent)
    found.add(own.memory->output(id, m), {.microbatch = m, .node = id, .what = NonFinite::What::output});
  return found.done();
}

DeviceNumbers::Look DeviceNumbers::at_sent_gradients(const WatchedStage& own, int m, int& marks) {
  Gathering found(*this, marks, false);
  for (const auto& [message, buffer] : own.memory->tensors().sent) {
    const std::vector<NodeId>& inputs = model_.graph()[message.consumer].inputs;
    const auto input = std::ranges::find(inputs, message.tensor) - inputs.begin();
    found.add(own.memory->at(buffer, m), {.microbatch = m,
                                          .phase = NonFinite::Phase::backward,
                                          .node = message.consumer,
                                          .what = NonFinite::What::input_gradient,
                                          .index = int(input)});
  }
  return found.done();
}

// `place` holds what all places of this look share. With `largest_rank` 1 only the gradients of vectors are
// checked.
DeviceNumbers::Look DeviceNumbers::at_weight_gradients(const std::vector<NodeId>& nodes, NonFinite place,
                                                       int largest_rank, bool bad, int& marks) {
  Gathering found(*this, marks, bad);
  place.what = NonFinite::What::weight_gradient;
  for (const NodeId id : nodes)
    for (size_t i = 0; i < model_[id].gradients.size(); ++i) {
      const Tensor& gradient = model_[id].gradients[i];
      if (!gradient || gradient.shape().rank() > largest_rank) continue;
      place.node = id, place.index = int(i);
      found.add(gradient, place);
    }
  return found.done();
}

void DeviceNumbers::prepare_looks() {
  using Phase = NonFinite::Phase;
  int marks = 0;
  for (const auto& [index, own] : place_.stages)
    for (int m = 0; m < place_.microbatches; ++m) {
      Looks& looks = looks_[index];
      looks.statistics.push_back(at_statistics(own, m, marks));
      looks.outputs.push_back(at_outputs(own, m, marks));
      looks.sent.push_back(at_sent_gradients(own, m, marks));
      looks.vectors.push_back(
          at_weight_gradients(own.nodes, {.microbatch = m, .phase = Phase::backward}, 1, false, marks));
    }
  gradients_ = at_weight_gradients(model_.nodes(), {.phase = Phase::update}, Shape::max_rank, true, marks);

  const TensorSpec spec{{std::max(marks, 1)}, DType::i32};
  marks_ = model_.context().backend().tensor(spec);
  for (Outcome& outcome : outcomes_) outcome.marks = Tensor(spec, copies_.page_locked(spec.bytes()));
}

void DeviceNumbers::begin_steps(std::span<const StepInput> steps) {
  ANTICHAIN_CHECK(steps.size() == 1, "a device has no steps in a row");
  ANTICHAIN_CHECK(steps_begun_ - steps_finished_ < 2, "two steps are under way at most");
  ++steps_begun_;
  Outcome& outcome = begun();
  outcome.noted.clear();
  outcome.step = steps.front();
  outcome.is_read = false;
  outcome.loss = outcome.correct = 0;
  outcome.report = {};
  forget();
  if (!judged()) return;
  if (!marks_) prepare_looks();
  device_.clear(marks_);  // a check that does not run leaves no mark
}

void DeviceNumbers::add_loss(NodeId id, int m, const Tensor& y) {
  const std::shared_ptr<std::byte>& all = losses_.storage();
  device_.copy(y, Tensor(y.spec(), {all, all.get() + loss_at_.at(id)[size_t(m)]}));
}

void DeviceNumbers::forward_started(int stage, int m) {
  for (const auto& [id, at] : loss_at_)
    if (std::ranges::binary_search(place_.stages.at(stage).nodes, id)) begun().noted.push_back({id, m});
}

void DeviceNumbers::take(const Look& look) {
  if (!look.places.empty()) device_.look(look.at, marks_, look.first);
}

void DeviceNumbers::look_at_forward(int stage, int m) {
  const Looks& looks = looks_.at(stage);
  take(looks.statistics[size_t(m)]);
  take(looks.outputs[size_t(m)]);
}

void DeviceNumbers::look_at_backward(int stage, int m, Verb half) {
  const Looks& looks = looks_.at(stage);
  if (half != Verb::backward_weight) take(looks.sent[size_t(m)]);
  take(looks.vectors[size_t(m)]);
}

void DeviceNumbers::look_at_gradients() { take(gradients_); }

// Waits for the device before the update.
bool DeviceNumbers::ask() {
  Outcome& outcome = begun();
  copy_out(outcome);
  device_.wait(device_.computed());
  read(outcome);
  return judge_(outcome.report);
}

void DeviceNumbers::end_step() {
  if (!begun().is_read) copy_out(begun());
  begun().ended = device_.computed();
}

// The one wait of a step, unless the judge had to know before the update.
void DeviceNumbers::finish(StepResult& result) {
  ANTICHAIN_CHECK(steps_finished_ < steps_begun_, "a step is begun before it is finished");
  Outcome& outcome = outcomes_[size_t(steps_finished_++ % 2)];
  device_.wait(outcome.ended);
  const bool is_asked = outcome.is_read;
  if (!is_asked) read(outcome);
  result.loss = outcome.loss;
  result.correct = outcome.correct;
  result.numbers = outcome.report;
  result.updated = is_asked || !judged() ? updated_ : judge_(outcome.report);
}

void DeviceNumbers::copy_out(Outcome& outcome) {
  if (losses_) device_.copy(losses_, outcome.losses);
  if (judged()) device_.copy(marks_, outcome.marks);
}

void DeviceNumbers::read(Outcome& outcome) {
  ANTICHAIN_CHECK(!outcome.is_read, "a step is read once");
  outcome.is_read = true;
  read_losses(outcome);
  if (judged()) read_marks(outcome);
}

// Losses are added up in the order in which they were computed.
void DeviceNumbers::read_losses(Outcome& outcome) const {
  for (const auto& [id, m] : outcome.noted) {
    const Node& node = model_.graph()[id];
    const float* y = outcome.losses.data<float>() + loss_at_.at(id)[size_t(m)] / int64_t(sizeof(float));
    const double weight = outcome.step.loss_weight(model_.graph(), id);
    for (int64_t n = 0; n < outcome.step.real_samples(m, node.output().shape[0]); ++n) {
      outcome.loss += weighted_loss(weight, y[2 * n]);
      if (id == model_.graph().size() - 1) outcome.correct += outcome.step.means.hit_weight * y[2 * n + 1];
    }
    if (!judged() || std::isfinite(outcome.loss)) continue;
    outcome.report.bad = true;
    outcome.report.note({.microbatch = m, .node = id, .what = NonFinite::What::output, .rank = place_.rank});
  }
}

void DeviceNumbers::read_marks(Outcome& outcome) const {
  const auto find = [&](const Look& look) {
    for (size_t i = 0; i < look.places.size(); ++i) {
      if (outcome.marks.data<int32_t>()[look.first + int(i)] == 0) continue;
      outcome.report.bad = outcome.report.bad || look.bad;
      outcome.report.note(look.places[i]);
    }
  };
  for (const auto& [stage, looks] : looks_)
    for (const std::vector<Look>* kind : {&looks.statistics, &looks.outputs, &looks.sent, &looks.vectors})
      for (const Look& look : *kind) find(look);
  find(gradients_);
}

}  // namespace antichain
