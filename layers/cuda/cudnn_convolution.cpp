// Plans convolutions by cuDNN. Plans are made once per rank, device and shape, because networks repeat
// theirs. Ranks that are threads have plans of their own: cuDNN does not promise that a plan may run in two
// streams at once.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "framework/cuda/check.h"
#include "framework/say.h"
#include "layers/cuda/convolution.h"
#include "layers/cuda/convolution_graph.h"
#include "layers/cuda/cudnn_check.h"
#include "layers/cuda/cudnn_handle.h"
#include "layers/cuda/kept_plans.h"
#include "layers/cuda/lent.h"
#include "layers/cuda/made_once.h"

namespace antichain::cuda {
namespace {

class CudnnPlan : public ConvolutionPlan {
 public:
  explicit CudnnPlan(ExecutionPlan plan) : plan_(std::move(plan)) {}
  int64_t workspace_bytes() const override { return plan_.workspace_bytes; }
  void run(Context& context, const void* x, const void* weight, const void* y,
           std::byte* workspace) const override {
    const cudnnHandle_t handle = cudnn_of(resources(context));
    const std::lock_guard lock(running_);  // not all engines allow two threads to run one plan at once
    execute(handle, plan_, {id_x, id_weight, id_y},
            {const_cast<void*>(x), const_cast<void*>(weight), const_cast<void*>(y)}, workspace);
  }

 private:
  const ExecutionPlan plan_;
  mutable std::mutex running_;
};

// Holds plans, and the handles that they are made with, by device.
struct Planner {
  MadeOnce<int, cudnnHandle_t> handles;
  MadeOnce<std::string, std::shared_ptr<const ConvolutionPlan>> plans;
};

int current_device() {
  int device = 0;
  ANTICHAIN_CUDA(cudaGetDevice(&device));
  return device;
}

cudnnHandle_t cudnn_planning_handle() {
  return lent_to_this_thread<Planner>().handles.of(current_device(), [] {
    cudnnHandle_t handle = nullptr;
    check_cudnn(cudnnCreate(&handle), "start");
    return handle;
  });
}

bool prints_plans() { return std::getenv("ANTICHAIN_CUDA_PLANS") != nullptr; }

// Engines that can't be planned here may leave an error as CUDA's last one, which the next launch would
// report as its own.
void forget_errors_of_planning() {
  const cudaError_t left = cudaGetLastError();
  if (left != cudaSuccess && prints_plans())
    note(fmt::format("planning left CUDA's error '{}' behind, which is dropped", cudaGetErrorString(left)));
}

// Returns what `make` makes of a target and a graph the first time, and the same plan from then on.
template <class Make>
std::shared_ptr<const ConvolutionPlan> plan_once(const Convolution& c, Pass pass, Layout layout,
                                                 const EngineRule& rule, const std::string& how,
                                                 const Make& make) {
  const std::string words = in_words(c, pass, layout, rule, how);
  const std::string key = fmt::format("{} {}", current_device(), words);
  return lent_to_this_thread<Planner>().plans.of(key, [&]() -> std::shared_ptr<const ConvolutionPlan> {
    const PlanTarget target{.handle = cudnn_planning_handle()};
    ExecutionPlan plan = make(target, operation_graph(target, describe(c, pass, layout)), rule);
    forget_errors_of_planning();
    if (prints_plans()) note(fmt::format("plan {} is {}", words, plan.plan ? plan.engine : "not to be had"));
    return plan.plan ? std::make_shared<CudnnPlan>(std::move(plan)) : nullptr;
  });
}

// Weights are few tiles of 128 x 128 and their sums are long, so the sums are cut until there is work for the
// whole device.
int64_t slices(const Convolution& c) {
  int processors = 0;
  ANTICHAIN_CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, current_device()));
  const auto tiles = [](int64_t rows) { return (rows + 127) / 128; };
  const int64_t filters = c.weight[0];
  return std::clamp<int64_t>(processors / (tiles(filters) * tiles(c.weight.elements() / filters)), 1, 128);
}

ExecutionPlan compiled_or_kept(const PlanTarget& target, const Descriptor& graph, const EngineRule& rule,
                               int64_t slices, const std::string& words) {
  cudaDeviceProp device{};
  ANTICHAIN_CUDA(cudaGetDeviceProperties(&device, current_device()));
  const std::string key =
      fmt::format("cuDNN {}, {}, compute capability {}.{}, {} processors, {}, {} slices", cudnnGetVersion(),
                  device.name, device.major, device.minor, device.multiProcessorCount, words, slices);
  ExecutionPlan kept = plan_of_text(target, kept_plan_text(key));
  if (kept.plan && !rule.without.contains(kept.number)) return kept;
  ExecutionPlan compiled = compiled_plan(target, graph, rule, slices);
  if (compiled.plan) keep_plan_text(key, text_of(compiled));
  return compiled;
}

}  // namespace

std::shared_ptr<const ConvolutionPlan> plan_by_cudnn(const Convolution& c, Pass pass, Layout layout,
                                                     Factors factors) {
  return plan_once(c, pass, layout, rule_for(c.dtype, factors), "ranked", choose_plan);
}

std::shared_ptr<const ConvolutionPlan> plan_compiled_weight_gradient(const Convolution& c) {
  const EngineRule rule = rule_for(c.dtype, Factors::exact);
  return plan_once(c, Pass::weight_gradient, Layout::nhwc, rule, "compiled",
                   [&](const PlanTarget& target, const Descriptor& graph, const EngineRule&) {
                     const std::string words =
                         in_words(c, Pass::weight_gradient, Layout::nhwc, rule, "compiled");
                     return compiled_or_kept(target, graph, rule, slices(c), words);
                   });
}

std::vector<NamedPlan> plans_by_cudnn(const Convolution& c, Pass pass, Layout layout, Factors factors) {
  const PlanTarget target{.handle = cudnn_planning_handle()};
  std::vector<NamedPlan> named;
  for (ExecutionPlan& plan : obeying_plans(target, operation_graph(target, describe(c, pass, layout)),
                                           rule_for(c.dtype, factors))) {
    std::string engine = fmt::format("cuDNN {}", plan.engine);
    named.push_back({std::move(engine), std::make_shared<CudnnPlan>(std::move(plan))});
  }
  forget_errors_of_planning();
  return named;
}

}  // namespace antichain::cuda
