// Convolutions planned by cuDNN. Plans are made once per process, device and shape: networks repeat theirs, and ranks that
// are threads share them, each with a handle of its own.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>

#include "framework/cuda/check.h"
#include "framework/say.h"
#include "layers/cuda/convolution.h"
#include "layers/cuda/cudnn_graph.h"

namespace antichain::cuda {
namespace {

enum Id : int64_t { id_x = 1, id_weight = 2, id_y = 3 };

// Dimensions in logical order (N, C, H, W), strides as the layout has them.
Descriptor describe(Id id, const Shape& s, DType dtype, Layout layout) {
  const std::vector<int64_t> strides = layout == Layout::nhwc
                                           ? std::vector<int64_t>{s[1] * s[2] * s[3], 1, s[3] * s[1], s[1]}
                                           : std::vector<int64_t>{s[1] * s[2] * s[3], s[2] * s[3], s[3], 1};
  return tensor(id, dtype, {s.begin(), s.end()}, strides);
}

// cuDNN reads the number of groups off the channels of x and of the weights.
Descriptor describe(const Convolution& c) {
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  const std::vector<int64_t> pad = {c.pad.h, c.pad.w};
  Descriptor d(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  d.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t(2))
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, std::vector<int64_t>{1, 1})
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, std::vector<int64_t>{c.stride.h, c.stride.w})
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, pad)
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, pad);
  return d.finalise("describe a convolution");
}

// The names that the three passes' attributes have.
struct Names {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t convolution, x, weight, y, alpha, beta;
};

Names names_of(Pass pass) {
  switch (pass) {
    case Pass::forward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case Pass::input_gradient:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Pass::weight_gradient:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

Descriptor describe(const Convolution& c, Pass pass, Layout layout) {
  const Names names = names_of(pass);
  const DType weight = pass == Pass::weight_gradient ? DType::f32 : c.dtype;
  Descriptor d(names.type);
  d.set(names.convolution, describe(c))
      .set(names.x, describe(id_x, c.x, c.dtype, layout))
      .set(names.weight, describe(id_weight, c.weight, weight, layout))
      .set(names.y, describe(id_y, c.y, c.dtype, layout))
      .set(names.alpha, 1.0f)
      .set(names.beta, 0.0f);
  return d.finalise("describe a pass of a convolution");
}

// Products of bf16 numbers are exact wherever they are made, and sums are float32; but Winograd's transforms of bf16 numbers
// are no bf16 numbers and would be rounded to some before they are multiplied.
EngineRule rule_for(DType dtype, Factors factors) {
  const bool bf16 = dtype == DType::bf16;
  return {.tensor_cores = bf16 || factors != Factors::exact, .winograd = !bf16};
}

class CudnnPlan : public ConvolutionPlan {
 public:
  explicit CudnnPlan(ExecutionPlan plan) : plan_(std::move(plan)) {}
  int64_t workspace_bytes() const override { return plan_.workspace_bytes; }
  void run(Context& context, const void* x, const void* weight, const void* y,
           std::byte* workspace) const override {
    const cudnnHandle_t handle = handle_of(context);
    const std::lock_guard lock(running_);  // not all engines allow two threads to run one plan at once
    execute(handle, plan_, {id_x, id_weight, id_y},
            {const_cast<void*>(x), const_cast<void*>(weight), const_cast<void*>(y)}, workspace);
  }

 private:
  static cudnnHandle_t handle_of(Context& context) {
    Resources& own = resources(context);
    if (!own.cudnn) {
      cudnnHandle_t handle = nullptr;
      check_cudnn(cudnnCreate(&handle), "start");
      own.cudnn = {handle, [](void* h) { cudnnDestroy(static_cast<cudnnHandle_t>(h)); }};
      check_cudnn(cudnnSetStream(handle, own.stream), "take a stream");
    }
    return static_cast<cudnnHandle_t>(own.cudnn.get());
  }

  const ExecutionPlan plan_;
  mutable std::mutex running_;
};

// Plans and the handles that they are made with; never taken down, as CUDA may end before static objects do.
struct Planner {
  std::mutex mutex;
  std::map<int, cudnnHandle_t> handles;  // by device
  std::map<std::string, std::shared_ptr<const ConvolutionPlan>> plans;

  cudnnHandle_t handle(int device) {
    cudnnHandle_t& handle = handles[device];
    if (!handle) check_cudnn(cudnnCreate(&handle), "start");
    return handle;
  }
};

Planner& planner() {
  static auto* planner = new Planner;
  return *planner;
}

// What `make` makes of a handle and a graph, the first time; from then on the same.
template <class Make>
std::shared_ptr<const ConvolutionPlan> shared_plan(const Convolution& c, Pass pass, Layout layout,
                                                   const EngineRule& rule, std::string_view how,
                                                   const Make& make) {
  int device = 0;
  ANTICHAIN_CUDA(cudaGetDevice(&device));
  const std::string key = fmt::format("{} {} {} {} {} {} | {} | {} | {} {} {} {}", device, int(pass), how,
                                      name_of(layout), name_of(c.dtype), rule.tensor_cores, c.x.str(),
                                      c.weight.str(), c.stride.h, c.stride.w, c.pad.h, c.pad.w);
  Planner& all = planner();
  const std::lock_guard lock(all.mutex);
  const auto [it, is_new] = all.plans.try_emplace(key);
  if (!is_new) return it->second;
  const cudnnHandle_t handle = all.handle(device);
  ExecutionPlan plan = make(handle, operation_graph(handle, describe(c, pass, layout)), rule);
  if (std::getenv("ANTICHAIN_CUDA_PLANS"))
    note(fmt::format("plan {} is {}", key, plan.plan ? plan.engine : "not to be had"));
  if (plan.plan) it->second = std::make_shared<CudnnPlan>(std::move(plan));
  return it->second;
}

// Weights are few tiles of 128 x 128 and their sums long, so these are cut until there is work for all of the device.
int64_t slices(const Convolution& c) {
  int device = 0, processors = 0;
  ANTICHAIN_CUDA(cudaGetDevice(&device));
  ANTICHAIN_CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  const auto tiles = [](int64_t rows) { return (rows + 127) / 128; };
  const int64_t filters = c.weight[0];
  return std::clamp<int64_t>(processors / (tiles(filters) * tiles(c.weight.elements() / filters)), 1, 128);
}

}  // namespace

std::shared_ptr<const ConvolutionPlan> plan_by_cudnn(const Convolution& c, Pass pass, Layout layout,
                                                     Factors factors) {
  return shared_plan(c, pass, layout, rule_for(c.dtype, factors), "ranked", choose_plan);
}

std::shared_ptr<const ConvolutionPlan> plan_compiled_weight_gradient(const Convolution& c) {
  return shared_plan(c, Pass::weight_gradient, Layout::nhwc, rule_for(c.dtype, Factors::exact), "compiled",
                     [&](cudnnHandle_t handle, const Descriptor& graph, const EngineRule& rule) {
                       return compiled_plan(handle, graph, rule, slices(c));
                     });
}

std::vector<NamedPlan> plans_by_cudnn(const Convolution& c, Pass pass, Layout layout, Factors factors) {
  int device = 0;
  ANTICHAIN_CUDA(cudaGetDevice(&device));
  const std::lock_guard lock(planner().mutex);
  const cudnnHandle_t handle = planner().handle(device);
  std::vector<NamedPlan> named;
  for (ExecutionPlan& plan : obeying_plans(handle, operation_graph(handle, describe(c, pass, layout)),
                                           rule_for(c.dtype, factors))) {
    std::string engine = fmt::format("cuDNN {}", plan.engine);
    named.push_back({std::move(engine), std::make_shared<CudnnPlan>(std::move(plan))});
  }
  return named;
}

}  // namespace antichain::cuda
