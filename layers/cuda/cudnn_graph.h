// Wraps cuDNN's graph API in the C form that cuDNN itself carries (cudnn_graph.h): descriptors with
// attributes, which are set, finalised, and from then on constant. This is all of it that we need:
//
//   Descriptor                one of cuDNN's objects, destroyed with its last owner
//   tensor, operation_graph   the ones every graph has
//   PlanTarget                the device that plans are made for
//   choose_plan, obeying_plans   the first engine of cuDNN's own ranking that obeys our rule, ready to run;
//                                all that do
//   execute                   a plan with pointers for its tensors
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/tensor.h"

namespace antichain::cuda {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(cudnnBackendDescriptorType_t);

  cudnnBackendDescriptor_t get() const { return descriptor_.get(); }
  explicit operator bool() const { return descriptor_ != nullptr; }

  Descriptor& set(cudnnBackendAttributeName_t, cudnnBackendAttributeType_t, int64_t count,
                  const void* values);
  Descriptor& set(cudnnBackendAttributeName_t name, const std::vector<int64_t>& values) {
    return set(name, CUDNN_TYPE_INT64, int64_t(values.size()), values.data());
  }
  Descriptor& set(cudnnBackendAttributeName_t name, int64_t value) {
    return set(name, CUDNN_TYPE_INT64, 1, &value);
  }
  Descriptor& set(cudnnBackendAttributeName_t name, float value) {
    return set(name, CUDNN_TYPE_FLOAT, 1, &value);
  }
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
    return set(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
  }
  Descriptor& set(cudnnBackendAttributeName_t, const Descriptor& value);
  Descriptor& finalise(const char* what);
  cudnnStatus_t try_finalise();

 private:
  std::shared_ptr<void> descriptor_;
};

// Describes tensor `id` of the graph, float32 or bf16; dimensions and strides are in elements.
Descriptor tensor(int64_t id, DType, const std::vector<int64_t>& dimensions,
                  const std::vector<int64_t>& strides);

// A PlanTarget is what a plan is made for: the device of a handle or, without a handle, a device that is only
// described to cuDNN (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR).
struct PlanTarget {
  cudnnHandle_t handle = nullptr;
  Descriptor device = {};
};
// Returns a device as cuDNN's JSON describes it (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION). No GPU or driver
// is needed.
PlanTarget described_device(const std::string& json);

Descriptor operation_graph(const PlanTarget&, const Descriptor& operation);

struct EngineRule {
  bool tensor_cores = false;  // may round float32 factors to TF32; exact with those of bf16
  bool winograd = true;       // with tiles of 4 x 4 at most
  int64_t most_workspace = int64_t(1) << 30;
  std::set<int64_t> without = {};  // numbers of engines
};

struct ExecutionPlan {
  Descriptor plan;
  int64_t workspace_bytes = 0;
  int64_t number = -1;  // of the engine
  std::string engine;   // its number and cuDNN's notes of it, for people
};

// Chooses the first engine that is deterministic by its own note, multiplies as exactly as requested, and can
// be planned here. The order is cuDNN's ranking by shape, architecture and version (its heuristics A, then
// its list of fallbacks), never by timing; engines that would have to be compiled now come last. The plan is
// empty where no engine obeys the rule.
ExecutionPlan choose_plan(const PlanTarget&, const Descriptor& graph, const EngineRule&);

// Returns all plans that obey the rule, or the first of them, in that order; those that would have to be
// compiled only where there is no other.
std::vector<ExecutionPlan> obeying_plans(const PlanTarget&, const Descriptor& graph, const EngineRule&,
                                         size_t most = SIZE_MAX);

void execute(cudnnHandle_t, const ExecutionPlan&, const std::vector<int64_t>& ids, std::vector<void*> data,
             void* workspace);

}  // namespace antichain::cuda
