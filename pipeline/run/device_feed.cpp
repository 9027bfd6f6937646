#include "pipeline/run/device_feed.h"

#include <cstring>
#include <utility>

#include "data/raw_images.h"
#include "framework/backend.h"
#include "framework/error.h"

namespace antichain {

DeviceFeed::DeviceFeed(const Graph& graph, const StageMemory& memory, const Backend& backend,
                       DeviceStep& step, CopyStream& copies, const Seat& seat, std::function<void()> idle)
    : memory_(memory),
      backend_(backend),
      device_(step),
      copies_(copies),
      seat_(seat),
      idle_(std::move(idle)) {
  for (const auto& [id, buffer] : memory.tensors().output)
    if (graph[id].role() == Role::input)
      inputs_.push_back({.name = graph[id].name, .spec = graph[id].output(), .buffer = buffer});
}

void DeviceFeed::begin_step(const BatchSource& source) {
  for (Input& input : inputs_) {
    const RawImages* raw = source.raw(input.name);
    if (!input.buffers[0].host) prepare(input, raw);
    ANTICHAIN_CHECK(bool(input.table) == (raw != nullptr), "samples come in one form in all steps");
  }
  loaded_ = 0;
  started_ = next_ && source.is_expected() ? 1 : 0;
  next_ = ended_ = false;
}

void DeviceFeed::prepare(Input& input, const RawImages* raw) {
  const auto page_locked = [&](const TensorSpec& spec) {
    return Tensor(spec, copies_.page_locked(spec.bytes()));
  };
  ANTICHAIN_CHECK(!raw || raw->shape == input.spec.shape, "raw images are of the input's shape");
  const TensorSpec spec = raw ? raw_spec(raw->shape, raw->mixed) : input.spec;
  for (Buffer& buffer : input.buffers) {
    buffer.host = page_locked(spec);
    if (raw) buffer.raw = backend_.tensor(spec);
  }
  if (!raw) return;
  input.table_here = page_locked({{int64_t(sizeof raw->table / sizeof(float))}});
  input.table = backend_.tensor(input.table_here.spec());
  std::memcpy(input.table_here.raw(), &raw->table, sizeof raw->table);
  device_.copy(input.table_here, input.table);
}

void DeviceFeed::load(int m, BatchSource& source) {
  ANTICHAIN_CHECK(m == seat_.microbatch(loaded_), "micro-batches are loaded in order");
  free_ = copies_.computed();
  if (started_ == loaded_) load_ahead(source);
  for (const Input& input : inputs_) {
    const Buffer& buffer = input.buffers[loaded_ % 2];
    copies_.compute_after(buffer.copied);
    if (input.table) device_.make_images(buffer.raw, input.table, memory_.at(input.buffer, m));
  }
  ++loaded_;
}

void DeviceFeed::load_ahead(BatchSource& source) {
  if (started_ > loaded_ || started_ == seat_.count()) return;
  start(started_, free_,
        [&](const std::string& input, int m, const Tensor& host) { source.fill(input, m, host); });
  ++started_;
}

void DeviceFeed::end_use() {
  free_ = copies_.computed();
  ended_ = true;
}

void DeviceFeed::load_next(BatchSource& source) {
  if (!ended_) end_use();
  if (inputs_.empty() || !source.expects_more()) return;
  start(0, free_,
        [&](const std::string& input, int m, const Tensor& host) { source.fill_next(input, m, host); });
  next_ = true;
}

void DeviceFeed::start(
    int turn, const Moment& after,
    const std::function<void(const std::string& input, int microbatch, const Tensor& host)>& draw) {
  const int m = seat_.microbatch(turn);
  for (Input& input : inputs_) {
    auto& [host, raw, copied] = input.buffers[turn % 2];
    while (copied && !copies_.reached(copied)) idle_();
    draw(input.name, m, host);
    copied = copies_.to_device(host, raw ? raw : memory_.at(input.buffer, m), after);
  }
}

}  // namespace antichain
