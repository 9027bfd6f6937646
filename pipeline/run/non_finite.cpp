#include "pipeline/run/non_finite.h"

#include <fmt/format.h>

#include <sstream>
#include <tuple>

namespace antichain {
namespace {

// Forward runs through the nodes upwards, backward downwards.
auto key(const NonFinite& o) {
  const bool update = o.phase == NonFinite::Phase::update;
  return std::tuple(update, update ? 0 : o.microbatch, o.phase,
                    o.phase == NonFinite::Phase::forward ? o.node : -o.node, o.what, o.index, o.rank);
}

std::string parameter(const NonFinite& o, const Node& node) {
  return full_name(node, node.signature.params[size_t(o.index)]);
}

std::string subject(const NonFinite& o, const Graph& graph, int64_t step) {
  const Node& node = graph[o.node];
  switch (o.what) {
    case NonFinite::What::output:
      return fmt::format("the output of node {} (rank {}) is", node.name, o.rank);
    case NonFinite::What::statistics:
      return fmt::format("the statistics of node {} (rank {}) are", node.name, o.rank);
    case NonFinite::What::parameter:
      return fmt::format(
          "the weights {} (rank {}), as {}, are", parameter(o, node), o.rank,
          step == 0 ? "training began with them" : fmt::format("the update of step {} left them", step));
    case NonFinite::What::input_gradient:
      return fmt::format("the gradient that node {} (rank {}) gives its input {} is", node.name, o.rank,
                         graph[node.inputs[size_t(o.index)]].name);
    case NonFinite::What::weight_gradient:
      return fmt::format("the gradient of the weights {} (rank {}) is", parameter(o, node), o.rank);
  }
  return "";
}

}  // namespace

std::strong_ordering NonFinite::operator<=>(const NonFinite& other) const {
  return key(*this) <=> key(other);
}

std::optional<NonFinite> first_non_finite(const std::vector<NumberReport>& reports) {
  NumberReport all;
  for (const NumberReport& report : reports) {
    all.bad = all.bad || report.bad;
    if (report.first) all.note(*report.first);
  }
  return all.bad ? all.first : std::nullopt;
}

std::string to_text(const NumberReport& report) {
  if (!report.first) return "-";
  const NonFinite& o = *report.first;
  return fmt::format("{:d} {} {} {} {} {} {}", report.bad, o.microbatch, int(o.phase), o.node, int(o.what),
                     o.index, o.rank);
}

NumberReport report_from_text(const std::string& text) {
  NumberReport report;
  NonFinite o;
  int phase = 0, what = 0;
  std::istringstream in(text);
  if (!(in >> report.bad >> o.microbatch >> phase >> o.node >> what >> o.index >> o.rank)) return {};
  o.phase = NonFinite::Phase(phase);
  o.what = NonFinite::What(what);
  report.first = o;
  return report;
}

std::string describe(const NonFinite& o, const Graph& graph, int64_t step) {
  const std::string where = o.phase == NonFinite::Phase::update
                                ? fmt::format("step {}, the sum of all micro-batches", step + 1)
                                : fmt::format("step {}, micro-batch {}", step + 1, o.microbatch);
  return fmt::format("{}: {} not finite (infinite or not a number)", where, subject(o, graph, step));
}

}  // namespace antichain
