#include "pipeline/program/gradient_tensors.h"

#include <algorithm>
#include <set>
#include <utility>

#include "framework/error.h"
#include "pipeline/program/parts.h"
#include "pipeline/program/shards.h"
#include "pipeline/schedule/gradient_buckets.h"

namespace antichain {

void GradientTensors::add() {
  std::set<int> tensors;
  for (auto n = stage_.nodes_.rbegin(); n != stage_.nodes_.rend(); ++n) {
    const StepNode& node = network_[size_t(*n)];
    if (node.needs_gradient) add_output_gradient(*n);
    tensors_.contributions[*n].resize(node.inputs.size());
    tensors.insert(node.inputs.begin(), node.inputs.end());
  }
  for (const int tensor : tensors)
    if (network_[size_t(tensor)].needs_gradient) fold(tensor);
}

void GradientTensors::add_terms() {
  const Shards shards = shards_of(network_, stage_.profile_, stage_.plan_, stage_.of_rank_, stage_.seat_);
  const std::vector<GradientBucket> buckets = gradient_buckets(
      stage_.profile_, stage_.nodes_, std::max(1, buckets_in(stage_.of_rank_, stage_.here())));
  for (size_t k = 0; k < buckets.size(); ++k) {
    const int64_t most = std::max(shards.most_bytes(int(k)), part_alignment_bytes);
    const int first = backward_at(stage_.nodes_[size_t(buckets[k].first)]) + 1;
    std::vector<BufferId>& of_bucket = stage_.tensors_.terms.emplace_back();
    for (int other = 1; other < stage_.seat_.replicas; ++other)
      of_bucket.push_back(
          stage_.passing(Content::term, -1, {{most / int64_t(sizeof(float))}}, first, order_.end));
  }
}

void GradientTensors::add_output_gradient(int node) {
  const auto terms = gradient_fold(stage_.profile_, stage_.stage_of_, node);
  if (terms.empty())
    throw Error("node '" + network_[size_t(node)].name + "' of model '" + stage_.profile_.model +
                    "' has parameters before it but no loss after it",
                "remove it or connect it to a loss");
  OutputGradient& out = tensors_.gradient[node];
  out.starts = true;
  int first = backward_at(node);
  for (const FoldTerm& term : terms) {
    if (term.stage == stage_.here()) {
      out.starts = false;
      out.received_after.clear();
      first = std::min(first, backward_at(term.message.consumer));
    } else {
      out.received_after.push_back(term.message);
    }
  }
  if (terms.size() == 1 && out.starts && !outlives(node)) return;  // dy is the received tensor itself
  const TensorSpec& spec = network_[size_t(node)].output;
  if (!outlives(node)) {
    out.sum = written_over(terms.front());
    if (out.sum == no_buffer) out.sum = stage_.passing(Content::gradient, node, spec, first, first);
    stage_.rank_.buffers[size_t(out.sum)].lifetime.last = backward_at(node);
    return;
  }
  out.sum = stage_.ring(Content::gradient, node, spec);
  stage_.write(Verb::backward_input, out.sum);
  stage_.read(Verb::backward_weight, out.sum);
}

// Returns the gradient of the consumer's own output where that of its input, whose fold this term begins,
// may be written over it.
BufferId GradientTensors::written_over(const FoldTerm& begins) const {
  const int consumer = begins.message.consumer;
  if (begins.stage != stage_.here() || !network_[size_t(consumer)].in_place) return no_buffer;
  const auto over = tensors_.gradient.find(consumer);
  if (over == tensors_.gradient.end() || over->second.sum == no_buffer) return no_buffer;
  const Buffer& dy = stage_.rank_.buffers[size_t(over->second.sum)];
  const bool fits = dy.spec.bytes() == network_[size_t(begins.message.tensor)].output.bytes();
  return dy.passing && fits ? over->second.sum : no_buffer;
}

// Walks the fold of one tensor and tells each local consumer where its contribution goes.
void GradientTensors::fold(int tensor) {
  const auto terms = gradient_fold(stage_.profile_, stage_.stage_of_, tensor);
  std::vector<Message> waiting;
  bool starts = true;
  for (const FoldTerm& term : terms) {
    if (term.stage != stage_.here()) {
      waiting.push_back(term.message);
      continue;
    }
    if (stage_.local(tensor)) {
      OutputGradient& out = tensors_.gradient[tensor];
      contribute(term.message.consumer, tensor, out.sum, std::exchange(waiting, {}), starts);
      starts = false;
      if (&term == &terms.back()) leave_last_term(term.message.consumer, tensor, out);
    } else {  // one message per term; only the first term can be a run of several consumers
      starts = true;
      const std::vector<int>& consumers = stage_.consumers_[size_t(tensor)];
      const int highest = &term == &terms.front() ? consumers.back() : term.message.consumer;
      for (auto c = consumers.rbegin(); c != consumers.rend(); ++c)
        if (*c <= highest && *c >= term.message.consumer)
          contribute(*c, tensor, stage_.tensors_.sent.at(term.message), {}, std::exchange(starts, false));
    }
  }
}

// Leaves the last consumer's term beside the sum where the kernel that reads the sum can add it. A sum that
// outlives this backward is kept whole.
void GradientTensors::leave_last_term(int consumer, int tensor, OutputGradient& out) {
  const std::vector<int>& inputs = network_[size_t(consumer)].inputs;
  if (!network_[size_t(tensor)].adds_dy || std::ranges::count(inputs, tensor) > 1 || outlives(tensor)) return;
  Contribution& c =
      tensors_.contributions[consumer][size_t(std::ranges::find(inputs, tensor) - inputs.begin())];
  if (c.written_directly()) return;
  c.left = true;
  out.term = c.term;
  stage_.rank_.buffers[size_t(c.term)].lifetime.last = backward_at(tensor);
}

// A consumer that uses the tensor twice contributes twice, in input order.
void GradientTensors::contribute(int consumer, int tensor, BufferId sum, std::vector<Message> received_before,
                                 bool starts) {
  const StepNode& node = network_[size_t(consumer)];
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != tensor) continue;
    Contribution& c = tensors_.contributions[consumer][i];
    c.wanted = true;
    c.starts = std::exchange(starts, false);
    c.adds = node.adds_dx && std::ranges::count(node.inputs, tensor) == 1;
    c.received_before = std::exchange(received_before, {});
    c.sum = sum;
    if (!c.written_directly())
      c.term = stage_.passing(Content::term, tensor, network_[size_t(tensor)].output, backward_at(consumer),
                              backward_at(consumer));
  }
}

}  // namespace antichain
