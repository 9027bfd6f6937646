#include "pipeline/device_readings.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "framework/error.h"
#include "pipeline/runner.h"

namespace antichain {

// Tensors of one look, and what each says; looks get their marks one after the other.
class DeviceReadings::Gathering {
 public:
  Gathering(DeviceReadings& all, int& marks, bool bad) : all_(all), marks_(marks) { look_.bad = bad; }
  void add(const Tensor& tensor, Offence offence) {
    offence.rank = all_.place_.rank;
    tensors_.push_back(tensor);
    look_.offences.push_back(offence);
  }
  Look done() {
    look_.at = all_.step_.looked_at(tensors_);
    look_.first = std::exchange(marks_, marks_ + int(tensors_.size()));
    return std::move(look_);
  }

 private:
  DeviceReadings& all_;
  int& marks_;
  Look look_;
  std::vector<Tensor> tensors_;
};

DeviceReadings::DeviceReadings(DeviceStep& step, CopyStream& copies, Stage& stage, const StageMemory& memory,
                               Place place)
    : step_(step), copies_(copies), stage_(stage), memory_(memory), place_(std::move(place)) {
  for (const NodeId id : stage.nodes()) {
    if (stage.graph()[id].role() != Role::loss) continue;
    const TensorSpec spec = stage.graph()[id].output();
    for (int m = 0; m < place_.microbatches; ++m)
      losses_[id].push_back(Tensor(spec, copies_.page_locked(spec.bytes())));
  }
}

void DeviceReadings::prepare_looks() {
  using Phase = Offence::Phase;
  using What = Offence::What;
  int marks = 0;
  for (int m = 0; m < place_.microbatches; ++m) {
    Gathering statistics(*this, marks, true);
    for (const auto& [id, rings] : memory_.statistics)
      for (const Ring& ring : rings)
        statistics.add(ring[m], {.microbatch = m, .node = id, .what = What::statistics});
    statistics_.push_back(statistics.done());

    Gathering outputs(*this, marks, false);
    for (const NodeId id : place_.sent)
      outputs.add(memory_.output.at(id)[m], {.microbatch = m, .node = id, .what = What::output});
    outputs_.push_back(outputs.done());

    Gathering sent(*this, marks, false);
    for (const auto& [message, ring] : memory_.sent) {
      const std::vector<NodeId>& inputs = stage_.graph()[message.consumer].inputs;
      const auto input = std::ranges::find(inputs, message.tensor) - inputs.begin();
      sent.add(ring[m], {.microbatch = m,
                         .phase = Phase::backward,
                         .node = message.consumer,
                         .what = What::input_gradient,
                         .index = int(input)});
    }
    sent_.push_back(sent.done());

    Gathering vectors(*this, marks, false);
    for (const NodeId id : stage_.nodes())
      for (size_t i = 0; i < stage_[id].gradients.size(); ++i)
        if (stage_[id].gradients[i].shape().rank() <= 1)
          vectors.add(stage_[id].gradients[i], {.microbatch = m,
                                                .phase = Phase::backward,
                                                .node = id,
                                                .what = What::weight_gradient,
                                                .index = int(i)});
    vectors_.push_back(vectors.done());
  }
  Gathering gradients(*this, marks, true);
  for (const NodeId id : stage_.nodes())
    for (size_t i = 0; i < stage_[id].gradients.size(); ++i)
      gradients.add(stage_[id].gradients[i],
                    {.phase = Phase::update, .node = id, .what = What::weight_gradient, .index = int(i)});
  gradients_ = gradients.done();

  const TensorSpec spec{{std::max(marks, 1)}, DType::i32};
  marks_ = stage_.context().backend().tensor(spec);
  marks_here_ = Tensor(spec, copies_.page_locked(spec.bytes()));
}

void DeviceReadings::begin_step(bool judged) {
  judged_ = judged;
  read_ = false;
  noted_.clear();
  if (!judged_) return;
  if (!marks_) prepare_looks();
  step_.clear(marks_);  // what is not looked at leaves no mark
}

void DeviceReadings::copy_loss(NodeId id, int m, const Tensor& y) {
  step_.copy(y, losses_.at(id)[size_t(m)]);
}

void DeviceReadings::forward_started(int m) {
  for (const auto& [id, losses] : losses_) noted_.push_back({id, m});
}

void DeviceReadings::take(const Look& look) {
  if (judged_ && !look.offences.empty()) step_.look(look.at, marks_, look.first);
}

void DeviceReadings::look_at_forward(int m) {
  if (!judged_) return;
  take(statistics_[size_t(m)]);
  take(outputs_[size_t(m)]);
}

void DeviceReadings::look_at_backward(int m, Verb half) {
  if (!judged_) return;
  if (half != Verb::backward_weight) take(sent_[size_t(m)]);
  take(vectors_[size_t(m)]);
}

void DeviceReadings::look_at_gradients() { take(gradients_); }

void DeviceReadings::read(StepResult& result, NumberReport& numbers) {
  ANTICHAIN_CHECK(!read_, "a step is read once");
  if (judged_) step_.copy(marks_, marks_here_);
  step_.wait();
  read_ = true;
  for (const auto& [id, m] : noted_) {
    const Tensor& y = losses_.at(id)[size_t(m)];  // N x 2: loss and hit of each sample
    for (int64_t n = 0; n < y.shape()[0]; ++n) {
      result.loss += stage_.graph()[id].signature.loss_weight * y.data<float>()[2 * n];
      result.correct += y.data<float>()[2 * n + 1];
    }
    if (!judged_ || std::isfinite(result.loss)) continue;
    numbers.bad = true;
    numbers.note({.microbatch = m, .node = id, .what = Offence::What::output, .rank = place_.rank});
  }
  if (!judged_) return;
  const auto find = [&](const Look& look) {
    for (size_t i = 0; i < look.offences.size(); ++i) {
      if (marks_here_.data<int32_t>()[look.first + int(i)] == 0) continue;
      numbers.bad = numbers.bad || look.bad;
      numbers.note(look.offences[i]);
    }
  };
  for (const std::vector<Look>* looks : {&statistics_, &outputs_, &sent_, &vectors_})
    for (const Look& look : *looks) find(look);
  find(gradients_);
}

}  // namespace antichain
