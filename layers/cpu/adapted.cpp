#include "layers/cpu/adapted.h"

#include <omp.h>

#include <algorithm>

#include "framework/error.h"
#include "layers/cpu/elementwise_loops.h"
#include "layers/cpu/for_each_range.h"

namespace antichain::cpu {

Reordered::Reordered(const Desc& from, const Desc& to) : from_(from), to_(to) {
  const auto desc = checked("describe a reorder", [&] {
    return dnnl::reorder::primitive_desc(engine(), from, engine(), to, user_scratchpad());
  });
  primitive_ = Primitive("create a reorder", desc);
}

void Reordered::run(Workspace& workspace, void* from, void* to) const {
  primitive_.run(workspace, {{DNNL_ARG_FROM, from_, from}, {DNNL_ARG_TO, to_, to}});
}

void Reordered::run(Context& context, void* from, void* to) const {
  Workspace workspace(context, scratch_bytes());
  run(workspace, from, to);
}

PreparedWeights::PreparedWeights(const Desc& have, const Desc& forward, const Desc& backward)
    : copies_forward_(!forward.is_zero()), copies_backward_(!backward.is_zero()) {
  for (const Desc* want : {&forward, &backward})
    if (!want->is_zero() && (copies_.empty() || copies_.back().to() != *want))
      copies_.emplace_back(have, *want);
}

std::vector<TensorSpec> PreparedWeights::specs() const {
  std::vector<TensorSpec> specs;
  for (const Reordered& copy : copies_) specs.push_back(opaque(copy.to()));
  return specs;
}

int64_t PreparedWeights::scratch_bytes() const {
  int64_t bytes = 0;
  for (const Reordered& copy : copies_) bytes = std::max(bytes, copy.scratch_bytes());
  return bytes;
}

void PreparedWeights::run(Context& context, const Tensor& weights, std::span<const Tensor> prepared) const {
  for (size_t i = 0; i < copies_.size(); ++i) copies_[i].run(context, weights.raw(), prepared[i].raw());
}

void Adapted::add(const Slot& slot) {
  Converted converted{slot, {}};
  const bool in = slot.direction == Direction::in;
  if (slot.have != slot.want)
    converted.reorder = in ? Reordered(slot.have, slot.want) : Reordered(slot.want, slot.have);
  slots_.push_back(std::move(converted));
}

int64_t Adapted::workspace_bytes() const {
  int64_t bytes = primitive_.scratch_bytes();
  for (const Converted& c : slots_)
    if (c.reorder) bytes += Workspace::rounded(int64_t(c.slot.want.get_size())) + c.reorder.scratch_bytes();
  return bytes;
}

void Adapted::run(Workspace& workspace, std::initializer_list<void*> data) const {
  ANTICHAIN_CHECK(data.size() == slots_.size(), "a primitive gets an argument per slot");
  std::vector<Argument> arguments;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const auto& [slot, reorder] = slots_[i];
    void* ours = data.begin()[i];
    void* its = reorder ? workspace.take(int64_t(slot.want.get_size())) : ours;
    if (reorder && slot.direction == Direction::in) reorder.run(workspace, ours, its);
    arguments.push_back({slot.id, slot.want, its});
  }
  primitive_.run(workspace, arguments);
  for (size_t i = 0; i < slots_.size(); ++i) {
    const auto& [slot, reorder] = slots_[i];
    void* ours = data.begin()[i];
    if (reorder && slot.direction == Direction::out) reorder.run(workspace, arguments[i].data, ours);
  }
}

template <class T>
void accumulate(const T* fresh, T* to, int64_t n) {
  for_each_range(n, n > (1 << 16) ? omp_get_max_threads() : 1, [&](int64_t begin, int64_t end) {
    elementwise_loops<T>().accumulate(fresh + begin, to + begin, end - begin);
  });
}
template void accumulate(const float*, float*, int64_t);
template void accumulate(const Bf16*, Bf16*, int64_t);

}  // namespace antichain::cpu
