#include "pipeline/run/device_readings.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "framework/error.h"
#include "pipeline/run/weighted_loss.h"

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

DeviceReadings::Look DeviceReadings::at_statistics(int m, int& marks) {
  Gathering found(*this, marks, true);
  for (const auto& [id, rings] : memory_.statistics)
    for (const Ring& ring : rings)
      found.add(ring[m], {.microbatch = m, .node = id, .what = Offence::What::statistics});
  return found.done();
}

DeviceReadings::Look DeviceReadings::at_outputs(int m, int& marks) {
  Gathering found(*this, marks, false);
  for (const NodeId id : place_.sent)
    found.add(memory_.output.at(id)[m], {.microbatch = m, .node = id, .what = Offence::What::output});
  return found.done();
}

DeviceReadings::Look DeviceReadings::at_sent_gradients(int m, int& marks) {
  Gathering found(*this, marks, false);
  for (const auto& [message, ring] : memory_.sent) {
    const std::vector<NodeId>& inputs = stage_.graph()[message.consumer].inputs;
    const auto input = std::ranges::find(inputs, message.tensor) - inputs.begin();
    found.add(ring[m], {.microbatch = m,
                        .phase = Offence::Phase::backward,
                        .node = message.consumer,
                        .what = Offence::What::input_gradient,
                        .index = int(input)});
  }
  return found.done();
}

// `place`: what every offence there has. With `largest_rank` 1 the gradients of vectors only.
DeviceReadings::Look DeviceReadings::at_weight_gradients(Offence place, int largest_rank, bool bad,
                                                         int& marks) {
  Gathering found(*this, marks, bad);
  place.what = Offence::What::weight_gradient;
  for (const NodeId id : stage_.nodes())
    for (size_t i = 0; i < stage_[id].gradients.size(); ++i) {
      if (stage_[id].gradients[i].shape().rank() > largest_rank) continue;
      place.node = id, place.index = int(i);
      found.add(stage_[id].gradients[i], place);
    }
  return found.done();
}

void DeviceReadings::prepare_looks() {
  using Phase = Offence::Phase;
  int marks = 0;
  for (int m = 0; m < place_.microbatches; ++m) {
    statistics_.push_back(at_statistics(m, marks));
    outputs_.push_back(at_outputs(m, marks));
    sent_.push_back(at_sent_gradients(m, marks));
    vectors_.push_back(at_weight_gradients({.microbatch = m, .phase = Phase::backward}, 1, false, marks));
  }
  gradients_ = at_weight_gradients({.phase = Phase::update}, Shape::max_rank, true, marks);

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
      result.loss += weighted_loss(stage_.graph()[id], y.data<float>()[2 * n]);
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
