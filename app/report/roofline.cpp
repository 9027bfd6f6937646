#include "app/report/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "app/cli/number_text.h"
#include "app/cli/table.h"
#include "layers/input.h"
#include "layers/linear.h"
#include "layers/softmax_cross_entropy.h"

namespace antichain {
namespace {

struct OfKind {
  std::string kind;
  double forward_s = 0, backward_s = 0, update_s = 0;  // of a step
  NodeWork work;

  double seconds() const { return forward_s + backward_s + update_s; }
};

std::string ms_or_dash(double seconds) { return seconds > 0 ? compact_ms(seconds) : "-"; }
std::string whole_percent(double share) { return fmt::format("{:.0f}", 100 * share); }

// Returns the kinds that take time, the longest first.
std::vector<OfKind> by_kind(const Graph& graph, const Profile& profile, int microbatches) {
  std::map<std::string, OfKind> kinds;
  OfKind update{.kind = "update"};
  for (NodeId id = 0; id < graph.size(); ++id) {
    const ProfileNode& node = profile.nodes[size_t(id)];
    OfKind& kind = kinds[node.op];
    kind.kind = node.op;
    kind.forward_s += microbatches * node.cost.forward_s;
    kind.backward_s += microbatches * node.cost.backward_s();
    kind.work = kind.work + (forward_work(graph, id) + backward_work(graph, id, microbatches)) * microbatches;
    update.update_s += node.cost.update_s;
    update.work = update.work + update_work(profile, id);
  }
  std::vector<OfKind> all = {update};
  for (const auto& [name, kind] : kinds) all.push_back(kind);
  std::erase_if(all, [](const OfKind& kind) { return kind.seconds() <= 0; });
  std::ranges::stable_sort(all, std::greater(), &OfKind::seconds);
  return all;
}

}  // namespace

Graph large_products(const Backend& device, Precision precision, int threads) {
  constexpr int64_t side = 1024;
  Graph graph("a product of matrices");
  const NodeId x = graph.add("x", std::make_shared<Input>(TensorSpec{{side * threads, side}}), {});
  const NodeId labels = input_labels(graph, "labels", side * threads);
  const NodeId first = linear(graph, "first", x, {.out = side});
  softmax_cross_entropy(graph, "loss", linear(graph, "second", first, {.out = side}), labels);
  return lower(graph, device, precision);
}

std::string describe(const Graph& graph, const Profile& profile, int microbatches, const Roofs& roofs) {
  using enum Table::Align;
  Table table({{"operator", left},
               {"forward\nms"},
               {"back-\nward ms"},
               {"all\nms"},
               {"share\n%"},
               {"GFLOP\n/s"},
               {"peak\n%"},
               {"\nGB/s"},
               {"peak\n%"},
               {"bound\nby", left}});
  const std::vector<OfKind> kinds = by_kind(graph, profile, microbatches);
  double step_s = 0;
  for (const OfKind& kind : kinds) step_s += kind.seconds();
  for (const OfKind& kind : kinds) {
    const double s = kind.seconds(), flops_per_s = kind.work.flops / s,
                 bytes_per_s = double(kind.work.bytes) / s;
    const bool computes = kind.work.flops > 0;
    table.add({kind.kind, ms_or_dash(kind.forward_s), ms_or_dash(kind.backward_s), compact_ms(s),
               percent(s / step_s), computes ? compact(flops_per_s * 1e-9) : "-",
               computes ? whole_percent(flops_per_s / roofs.flops_per_s) : "-", compact(bytes_per_s * 1e-9),
               whole_percent(bytes_per_s / roofs.bytes_per_s),
               roofs.computing_binds(kind.work) ? "FLOPs" : "bytes"});
  }
  return fmt::format(
      "Roofline of a step of {}, whose kernels take {} ms\n{}"
      "Peaks of this run, by {} a rank: {:.1f} GFLOP/s (a product of matrices in {}) and {:.2f} GB/s (a sum\n"
      "of two arrays of {} MiB). Above {:.1f} FLOPs a byte an operator is bound by FLOPs. Bytes are the "
      "least "
      "that\nmust be read and written, so a cache or Winograd's algorithm may exceed 100 %.\n",
      counted(microbatches, "micro-batch", "micro-batches"), milliseconds(step_s), table.str(),
      counted(profile.threads, "thread"), roofs.flops_per_s * 1e-9, name_of(profile.precision),
      roofs.bytes_per_s * 1e-9, roofs.array_bytes >> 20, roofs.flops_per_s / roofs.bytes_per_s);
}

}  // namespace antichain
