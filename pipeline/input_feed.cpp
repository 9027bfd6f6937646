#include "pipeline/input_feed.h"

#include <utility>

#include "framework/error.h"
#include "pipeline/runner.h"

namespace antichain {

InputFeed::InputFeed(const Graph& graph, const StageMemory& memory, CopyStream& copies, int microbatches,
                     std::function<void()> idle)
    : copies_(copies), microbatches_(microbatches), idle_(std::move(idle)) {
  for (const auto& [id, ring] : memory.output) {
    if (graph[id].role() != Role::input) continue;
    const TensorSpec spec = graph[id].output();
    inputs_.push_back({.name = graph[id].name, .ring = &ring});
    for (Buffer& buffer : inputs_.back().buffers)
      buffer.host = Tensor(spec, copies_.page_locked(spec.bytes()));
  }
}

void InputFeed::begin_step(const BatchSource& source) {
  loaded_ = 0;
  started_ = next_ && source.is_expected() ? 1 : 0;
  next_ = ended_ = false;
}

void InputFeed::load(int m, BatchSource& source) {
  ANTICHAIN_CHECK(m == loaded_, "micro-batches are loaded in order");
  free_ = copies_.computed();
  if (started_ == m) load_ahead(source);
  for (const Input& input : inputs_) copies_.compute_after(input.buffers[m % 2].copied);
  ++loaded_;
}

void InputFeed::load_ahead(BatchSource& source) {
  if (started_ > loaded_ || started_ == microbatches_) return;
  start(started_, free_,
        [&](const std::string& input, const Tensor& host) { source.fill(input, started_, host); });
  ++started_;
}

void InputFeed::end_step() {
  free_ = copies_.computed();
  ended_ = true;
}

void InputFeed::load_next(BatchSource& source) {
  if (!ended_) end_step();
  if (inputs_.empty() || !source.expects_more()) return;
  start(0, free_, [&](const std::string& input, const Tensor& host) { source.fill_next(input, host); });
  next_ = true;
}

void InputFeed::start(int m, const Moment& after,
                      const std::function<void(const std::string& input, const Tensor& host)>& draw) {
  for (Input& input : inputs_) {
    auto& [host, copied] = input.buffers[m % 2];
    while (copied && !copies_.reached(copied)) idle_();
    draw(input.name, host);
    copied = copies_.to_device(host, (*input.ring)[m], after);
  }
}

}  // namespace antichain
