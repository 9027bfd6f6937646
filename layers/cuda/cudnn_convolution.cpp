// Plans convolutions by cuDNN. Plans are made once per rank, device and shape, because networks repeat
// theirs. Ranks that are threads have plans of their own: cuDNN does not promise that a plan may run in two
// streams at once.
#include <fmt/format.h>

#include "framework/cuda/check.h"
#include "framework/cuda/switches.h"
#include "framework/say.h"
#include "layers/cuda/convolution.h"
#include "layers/cuda/convolution_graph.h"
#include "layers/cuda/cudnn_check.h"
#include "layers/cuda/cudnn_handle.h"
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
    execute(handle, plan_, {id_x, id_weight, id_y},
            {const_cast<void*>(x), const_cast<void*>(weight), const_cast<void*>(y)}, workspace);
  }

 private:
  const ExecutionPlan plan_;
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

// Engines that can't be planned here may leave an error as CUDA's last one, which the next launch would
// report as its own.
void forget_errors_of_planning() {
  const cudaError_t left = cudaGetLastError();
  if (left != cudaSuccess && prints_plans())
    note(fmt::format("planning left CUDA's error '{}' behind, which is dropped", cudaGetErrorString(left)));
}

}  // namespace

std::shared_ptr<const ConvolutionPlan> plan_by_cudnn(const Convolution& c, Pass pass, Factors factors) {
  const EngineRule rule = rule_for(c.dtype, factors);
  const std::string words = in_words(c, pass, rule);
  const std::string key = fmt::format("{} {}", current_device(), words);
  return lent_to_this_thread<Planner>().plans.of(key, [&]() -> std::shared_ptr<const ConvolutionPlan> {
    const PlanTarget target{.handle = cudnn_planning_handle()};
    ExecutionPlan plan = choose_plan(target, operation_graph(target, describe(c, pass)), rule);
    forget_errors_of_planning();
    if (prints_plans()) note(fmt::format("plan {} is {}", words, plan.plan ? plan.engine : "not to be had"));
    return plan.plan ? std::make_shared<CudnnPlan>(std::move(plan)) : nullptr;
  });
}

std::vector<NamedPlan> plans_by_cudnn(const Convolution& c, Pass pass, Factors factors) {
  const PlanTarget target{.handle = cudnn_planning_handle()};
  std::vector<NamedPlan> named;
  const Descriptor graph = operation_graph(target, describe(c, pass));
  for (ExecutionPlan& plan : obeying_plans(target, graph, rule_for(c.dtype, factors))) {
    std::string engine = fmt::format("cuDNN {}", plan.engine);
    named.push_back({std::move(engine), std::make_shared<CudnnPlan>(std::move(plan))});
  }
  forget_errors_of_planning();
  return named;
}

}  // namespace antichain::cuda
