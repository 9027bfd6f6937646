// Lists the running statistics of a stage in the device's memory, once, for the launch that absorbs them.
#include <algorithm>
#include <utility>

#include "framework/cuda/absorb.h"
#include "framework/cuda/list_on_device.h"

namespace antichain::cuda {
namespace {

// Keeps the lists of parts and of statistics in the device's memory, and keeps alive what they point to.
class AbsorptionInOneLaunch : public Absorption {
 public:
  AbsorptionInOneLaunch(const Context& context, std::vector<Absorbed> nodes) {
    for (Absorbed& node : nodes)
      (node.kernel->running_averages() ? nodes_ : others_).push_back(std::move(node));
    std::vector<const float*> statistics;
    for (const Absorbed& node : nodes_)
      for (const std::vector<Tensor>& of_microbatch : node.statistics)
        for (const Tensor& t : of_microbatch) statistics.push_back(t.data<float>());
    statistics_ = list_on_device(context, statistics);
    std::vector<RunningPart> parts;
    auto* next = reinterpret_cast<const float* const*>(statistics_.raw());
    for (const Absorbed& node : nodes_) {
      const uint32_t channels = uint32_t(node.buffers[0].elements());
      for (uint32_t first = 0; first < channels; first += longest_running_part)
        parts.push_back({.mean = node.buffers[0].data<float>(),
                         .variance = node.buffers[1].data<float>(),
                         .batches = first == 0 ? node.buffers[2].data<int32_t>() : nullptr,
                         .statistics = next,
                         .first = first,
                         .channels = std::min(longest_running_part, channels - first),
                         .microbatches = int(node.statistics.size()),
                         .rule = *node.kernel->running_averages()});
      next += 2 * node.statistics.size();
    }
    count_ = int64_t(parts.size());
    parts_ = list_on_device(context, parts);
  }

  void run(Context& context) const override {
    absorb(stream_of(context), reinterpret_cast<const RunningPart*>(parts_.raw()), count_);
    for (const Absorbed& node : others_) node.kernel->absorb(context, node.statistics, node.buffers);
  }

 private:
  std::vector<Absorbed> nodes_, others_;
  Tensor statistics_, parts_;
  int64_t count_ = 0;
};

}  // namespace

std::unique_ptr<Absorption> absorb_in_one_launch(const Context& context, std::vector<Absorbed> nodes) {
  if (nodes.empty()) return nullptr;
  return std::make_unique<AbsorptionInOneLaunch>(context, std::move(nodes));
}

}  // namespace antichain::cuda
