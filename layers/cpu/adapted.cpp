#include "layers/cpu/adapted.h"

#include <omp.h>

#include "framework/error.h"
#include "layers/cpu/elementwise_loops.h"
#include "layers/cpu/for_each_range.h"

namespace antichain::cpu {

void Adapted::add(const Slot& slot) {
  Converted converted{slot, {}};
  if (slot.have != slot.want) {
    const bool in = slot.direction == Direction::in;
    const Desc& from = in ? slot.have : slot.want;
    const Desc& to = in ? slot.want : slot.have;
    const auto desc = checked("describe a reorder", [&] {
      return dnnl::reorder::primitive_desc(engine(), from, engine(), to, user_scratchpad());
    });
    converted.reorder = Primitive("create a reorder", desc);
  }
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
    if (reorder && slot.direction == Direction::in)
      reorder.run(workspace, {{DNNL_ARG_FROM, slot.have, ours}, {DNNL_ARG_TO, slot.want, its}});
    arguments.push_back({slot.id, slot.want, its});
  }
  primitive_.run(workspace, arguments);
  for (size_t i = 0; i < slots_.size(); ++i) {
    const auto& [slot, reorder] = slots_[i];
    void* ours = data.begin()[i];
    if (reorder && slot.direction == Direction::out)
      reorder.run(workspace, {{DNNL_ARG_FROM, slot.want, arguments[i].data}, {DNNL_ARG_TO, slot.have, ours}});
  }
}

void accumulate(const float* fresh, float* dw, int64_t n) {
  for_each_range(n, n > (1 << 16) ? omp_get_max_threads() : 1, [&](int64_t begin, int64_t end) {
    elementwise_loops().accumulate(fresh + begin, dw + begin, end - begin);
  });
}

}  // namespace antichain::cpu
