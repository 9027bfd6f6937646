// This is one step as the runner's caller sees it: where samples come from, what the step is told, and what
// it returns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "framework/graph.h"
#include "framework/tensor.h"
#include "pipeline/run/non_finite.h"
#include "pipeline/schedule/timeline.h"

namespace antichain {

struct RawImages;

// A BatchSource gives the values of input nodes. Every rank draws the samples it needs itself: labels are
// never sent.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // Fills `out` (host memory, plain, first dimension = samples) for one micro-batch of the current batch. It
  // may be called before the schedule loads that micro-batch.
  virtual void fill(std::string_view input, int microbatch, const Tensor& out) = 0;

  // If not nullptr, an input's samples come as bytes instead, in tensors of raw_spec(), and the device makes
  // the input's values of them. The answer is the same for all steps of a runner. Only a device with memory
  // of its own asks for it.
  virtual const RawImages* raw(std::string_view /*input*/) const { return nullptr; }

  // These are about the batch that is expected after the current one, if any is. The rank's first micro-batch
  // of it is drawn while the current batch is computed.
  virtual bool expects_more() const { return false; }
  virtual void fill_next(std::string_view /*input*/, int /*microbatch*/, const Tensor& /*out*/) {}
  virtual bool is_expected() const { return false; }  // the current batch is that of the last fill_next
};

// What losses that are no means over samples make of one (loss_means.h): what replaces
// Signature::loss_weight, and a factor of the hits. Devices repeat their recordings of a step only while the
// weights stay as they are.
struct StepMeans {
  std::map<NodeId, double> loss_weights = {};
  double hit_weight = 1;
};

struct StepInput {
  uint64_t step = 0, seed = 0;
  int batch = 0;   // samples: the loss divides by it
  float rate = 0;  // learning rate
  bool traced = false;
  int padding = 0;  // of the samples, at the end: they count nothing
  StepMeans means = {};
  // Of asynchronous training: the rate of a stage is divided by its delay to this power (PipeMare's T1: Yang
  // et al., "PipeMare: Asynchronous Pipeline Parallel DNN Training", MLSys 2021).
  double delay_power = 0;
  bool synchronous = false;  // older weights become the newest with the update, so the next step has no delay

  double loss_weight(const Graph& graph, NodeId id) const {
    const auto found = means.loss_weights.find(id);
    return found == means.loss_weights.end() ? graph[id].signature.loss_weight : found->second;
  }
  // Returns how many of a micro-batch's samples do not pad.
  int64_t real_samples(int microbatch, int64_t samples) const {
    return std::clamp<int64_t>(batch - padding - microbatch * samples, 0, samples);
  }
};

// Losses are sums over the samples of the loss nodes that this rank owns, and zero elsewhere; so are the hits
// of the model's own loss, the last node. Padding samples count nothing.
struct StepResult {
  double loss = 0, correct = 0;
  std::vector<Event> events;  // of a traced step, in seconds since its start
  NumberReport numbers;       // with a judge
  bool updated = true;        // what the judge said
};

}  // namespace antichain
