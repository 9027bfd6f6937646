#include "pipeline/measure/roofs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "framework/backend.h"
#include "framework/error.h"
#include "pipeline/host/seconds.h"
#include "pipeline/measure/profiler.h"

namespace antichain {
namespace {

int64_t weights_touched(const Node& node, int64_t weight_bytes) {
  return node.op->type() == "embedding" ? std::min(weight_bytes, node.output().bytes()) : weight_bytes;
}

// Weights are stored in float32, and products in bf16 read copies of half the size.
int64_t weights_read(const Node& node) {
  const int64_t bytes = param_bytes(node) + param_bytes(node, /*trained=*/false);
  const bool halved = node.lowering.precision == Precision::bf16 && !node.lowering.prepared.empty();
  return weights_touched(node, halved ? bytes / 2 : bytes);
}

int64_t stash_bytes(const Node& node) {
  int64_t bytes = 0;
  for (const TensorSpec& stash : node.lowering.stash) bytes += stash.bytes();
  return bytes;
}

// The caches of one level are shared by the ranks of a host. Without an answer of the system, 64 MiB is more
// than most caches hold, and 512 MiB is enough where a virtual machine reports the cache of the whole host.
int64_t array_bytes(int ranks_at_once) {
  constexpr int64_t mib = 1 << 20;
  const auto cache = int64_t(sysconf(_SC_LEVEL3_CACHE_SIZE));
  return std::clamp(cache / ranks_at_once, 64 * mib, 512 * mib) / 64 * 64;
}

double measured_bytes_per_s(Context& context, Job& job, int64_t bytes) {
  constexpr int turns = 9;
  const Tensor x = Tensor::host({{bytes / 4}}), y = Tensor::host({{bytes / 4}});
  std::fill_n(x.data<float>(), x.elements(), 1.f);  // pages that nobody has written may lie in a cache
  job.barrier();
  double best_s = std::numeric_limits<double>::infinity();
  for (int turn = 0; turn < turns; ++turn) {
    job.activity().beat();
    const double start_s = now_s();
    context.backend().add(context, x, y);
    best_s = std::min(best_s, now_s() - start_s);
  }
  return 3 * double(bytes) / best_s;
}

double best_flops_per_s(const Graph& graph, const Profile& profile, int microbatches) {
  double best = 0;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const NodeCost& cost = profile.nodes[size_t(id)].cost;
    if (cost.forward_s > 0) best = std::max(best, forward_work(graph, id).flops / cost.forward_s);
    if (cost.backward_s() > 0)
      best = std::max(best, backward_work(graph, id, microbatches).flops / cost.backward_s());
  }
  return best;
}

}  // namespace

NodeWork forward_work(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  if (node.role() == Role::input) return {};
  NodeWork work{node.signature.forward_flops, weights_read(node) + node.output().bytes() + stash_bytes(node)};
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (node.op->wants(i, node.inputs.size()) != Wants::samples)
      work.bytes += graph[node.inputs[i]].output().bytes();
  return work;
}

NodeWork backward_work(const Graph& graph, NodeId id, int microbatches) {
  const Node& node = graph[id];
  if (!graph.has_backward(id)) return {};
  NodeWork work{.bytes = stash_bytes(node)};
  if (node.role() != Role::loss) work.bytes += node.output().bytes();  // its gradient
  if (node.lowering.keeps_y) work.bytes += node.output().bytes();
  int gradients = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const int64_t bytes = graph[node.inputs[i]].output().bytes();
    if (node.lowering.keeps(i)) work.bytes += bytes;
    if (graph.needs_gradient(node.inputs[i])) work.bytes += bytes, gradients = 1;
  }
  if (gradients > 0) work.bytes += weights_read(node);
  if (trains(node))
    work.bytes += (microbatches > 1 ? 2 : 1) * weights_touched(node, param_bytes(node)), ++gradients;
  if (node.signature.params.empty()) gradients *= 2;
  work.flops = gradients * node.signature.forward_flops;
  return work;
}

NodeWork update_work(const Profile& profile, int id) {
  const ProfileNode& node = profile.nodes[size_t(id)];
  int64_t weights = node.cost.param_bytes, slots = node.cost.slot_bytes();
  for (const SharedUse& use : node.shared)
    if (use.first != id) weights -= use.bytes, slots -= use.slot_bytes;
  return {.bytes = 3 * weights + 2 * slots + node.cost.prepared_bytes};
}

void check_roofs(const Backend& device) {
  if (!device.host_memory())
    throw Error(fmt::format("the roofs of {} are not measured, only those of processors", device.name()),
                "leave --roofline out, or give --device cpu", ExitCode::usage);
}

Roofs measure_roofs(const Graph& product, Context& context, Transport& transport) {
  check_roofs(context.backend());
  Job& job = transport.job();
  constexpr int turns = 3;
  const MeasureOptions options{.budget_s = 0.3, .min_repeats = 3};
  Roofs roofs{.array_bytes = array_bytes(job.local_size())};
  for (int turn = 0; turn < turns; ++turn)
    roofs.flops_per_s = std::max(
        roofs.flops_per_s,
        best_flops_per_s(product, measure(product, context, transport, options), options.microbatches));
  job.activity().doing("measuring the bandwidth of memory");
  roofs.bytes_per_s = measured_bytes_per_s(context, job, roofs.array_bytes);
  return roofs;
}

}  // namespace antichain
