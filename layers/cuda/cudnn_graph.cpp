#include "layers/cuda/cudnn_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "layers/cuda/cudnn_check.h"

namespace antichain::cuda {
namespace {

// Returns an array-valued attribute of an engine.
template <class Note>
std::vector<Note> notes(const Descriptor& engine, cudnnBackendAttributeName_t name,
                        cudnnBackendAttributeType_t type, size_t most) {
  std::vector<Note> found(most);
  int64_t count = 0;
  check_cudnn(cudnnBackendGetAttribute(engine.get(), name, type, int64_t(most), &count, found.data()),
              "read the notes of an engine");
  found.resize(size_t(std::min(count, int64_t(most))));
  return found;
}

template <class Note>
bool has(const std::vector<Note>& notes, Note wanted) {
  return std::find(notes.begin(), notes.end(), wanted) != notes.end();
}

struct Candidate {
  Descriptor config;
  std::vector<cudnnBackendNumericalNote_t> numerical;
  bool compiles = false;
  int64_t number = -1;
  bool is_fallback = false;
};

Candidate candidate(Descriptor config) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t of_config = engine.get();
  int64_t count = 0;
  check_cudnn(cudnnBackendGetAttribute(config.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &of_config),
              "read the engine of a configuration");
  Candidate c{.config = std::move(config)};
  c.numerical = notes<cudnnBackendNumericalNote_t>(
      engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  c.compiles =
      has(notes<cudnnBackendBehaviorNote_t>(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                                            CUDNN_BEHAVIOR_NOTE_TYPE_COUNT),
          CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);
  check_cudnn(cudnnBackendGetAttribute(engine.get(), CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1,
                                       &count, &c.number),
              "read the number of an engine");
  return c;
}

// Returns nothing where the heuristic has no answer for such a graph.
std::vector<Candidate> ranking(const PlanTarget& target, const Descriptor& graph,
                               cudnnBackendHeurMode_t mode) {
  Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (target.device) heuristic.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, target.device);
  if (heuristic.try_finalise() != CUDNN_STATUS_SUCCESS) return {};
  int64_t count = 0;
  if (cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                               0, &count, nullptr) != CUDNN_STATUS_SUCCESS)
    return {};
  std::vector<Descriptor> configs;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < count; ++i) {
    configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    raw.push_back(configs.back().get());
  }
  int64_t filled = 0;
  if (count == 0 ||
      cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                               count, &filled, raw.data()) != CUDNN_STATUS_SUCCESS)
    return {};
  std::vector<Candidate> candidates;
  for (int64_t i = 0; i < std::min(filled, count); ++i) {
    candidates.push_back(candidate(std::move(configs[size_t(i)])));
    candidates.back().is_fallback = mode == CUDNN_HEUR_MODE_FALLBACK;
  }
  return candidates;
}

bool obeys(const Candidate& c, const EngineRule& rule) {
  if (rule.without.contains(c.number)) return false;
  for (const auto refused :
       {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION,
        CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS,  // to half precision
        CUDNN_NUMERICAL_NOTE_FFT, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6,
        CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13})  // these cost digits
    if (has(c.numerical, refused)) return false;
  for (const auto winograd : {CUDNN_NUMERICAL_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4})
    if (!rule.winograd && has(c.numerical, winograd)) return false;
  return rule.tensor_cores || !has(c.numerical, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
}

int64_t workspace_of(const Descriptor& plan) {
  int64_t count = 0, bytes = 0;
  check_cudnn(cudnnBackendGetAttribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
                                       1, &count, &bytes),
              "read the workspace of a plan");
  return bytes;
}

ExecutionPlan plan_of(const PlanTarget& target, const Candidate& c, const EngineRule& rule) {
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, c.config);
  if (target.device)
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, target.device);
  else
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &target.handle);
  if (plan.try_finalise() != CUDNN_STATUS_SUCCESS) return {};
  const int64_t bytes = workspace_of(plan);
  if (bytes > rule.most_workspace) return {};
  std::string notes;
  for (const auto note : c.numerical) notes += fmt::format(" {}", int(note));
  return {std::move(plan), bytes, c.number,
          fmt::format("engine {}, notes{}{}", c.number, notes, c.compiles ? ", compiled here" : "")};
}

}  // namespace

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t descriptor = nullptr;
  check_cudnn(cudnnBackendCreateDescriptor(type, &descriptor), "create a descriptor");
  descriptor_ = {descriptor, [](void* d) { cudnnBackendDestroyDescriptor(d); }};
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                            const void* values) {
  const cudnnStatus_t status = cudnnBackendSetAttribute(get(), name, type, count, values);
  if (status != CUDNN_STATUS_SUCCESS) check_cudnn(status, fmt::format("set attribute {}", int(name)).c_str());
  return *this;
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, const Descriptor& value) {
  const cudnnBackendDescriptor_t raw = value.get();
  return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
}

cudnnStatus_t Descriptor::try_finalise() { return cudnnBackendFinalize(get()); }

Descriptor& Descriptor::finalise(const char* what) {
  check_cudnn(try_finalise(), what);
  return *this;
}

Descriptor tensor(int64_t id, DType dtype, const std::vector<int64_t>& dimensions,
                  const std::vector<int64_t>& strides) {
  const cudnnDataType_t type = dtype == DType::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
  Descriptor t(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  t.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, dimensions)
      .set(CUDNN_ATTR_TENSOR_STRIDES, strides)
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t(16));
  return t.finalise("describe a tensor");
}

PlanTarget described_device(const std::string& json) {
  PlanTarget target{.device = Descriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR)};
  target.device
      .set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, int64_t(json.size()), json.data())
      .finalise("take the description of a device");
  return target;
}

Descriptor operation_graph(const PlanTarget& target, const Descriptor& operation) {
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (target.handle) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &target.handle);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  return graph.finalise("describe an operation graph");
}

// The fallbacks are a list of engines without a choice of their knobs; the ranking already has most of them.
std::vector<ExecutionPlan> obeying_plans(const PlanTarget& target, const Descriptor& graph,
                                         const EngineRule& rule, size_t most) {
  std::vector<Candidate> candidates = ranking(target, graph, CUDNN_HEUR_MODE_A);
  std::ranges::move(ranking(target, graph, CUDNN_HEUR_MODE_FALLBACK), std::back_inserter(candidates));
  // Compiling takes about a second a shape, so what would have to be compiled comes last.
  std::stable_partition(candidates.begin(), candidates.end(), [](const Candidate& c) { return !c.compiles; });
  std::vector<ExecutionPlan> all;
  std::set<int64_t> found;
  for (const Candidate& c : candidates) {
    const bool is_spare = c.compiles || (c.is_fallback && found.contains(c.number));
    if (all.size() == most || !obeys(c, rule) || (!all.empty() && is_spare)) continue;
    ExecutionPlan plan = plan_of(target, c, rule);
    if (!plan.plan) continue;
    found.insert(c.number);
    all.push_back(std::move(plan));
  }
  return all;
}

ExecutionPlan choose_plan(const PlanTarget& target, const Descriptor& graph, const EngineRule& rule) {
  std::vector<ExecutionPlan> first = obeying_plans(target, graph, rule, 1);
  return first.empty() ? ExecutionPlan() : std::move(first[0]);
}

void execute(cudnnHandle_t handle, const ExecutionPlan& plan, const std::vector<int64_t>& ids,
             std::vector<void*> data, void* workspace) {
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, int64_t(data.size()), data.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  pack.finalise("collect the arguments of a plan");
  const cudnnStatus_t status = cudnnBackendExecute(handle, plan.plan.get(), pack.get());
  if (status != CUDNN_STATUS_SUCCESS)
    check_cudnn(status, fmt::format("run {}", plan.engine).c_str(),
                fmt::format("set ANTICHAIN_CUDA_SKIP={} to leave this engine out, ", plan.number));
}

}  // namespace antichain::cuda
