#include "app/report/engines_report.h"

#include <fmt/format.h>

#include <cmath>

#include "app/cli/number_text.h"
#include "app/cli/table.h"

namespace antichain {
namespace {

std::string microseconds(double s) { return std::isfinite(s) ? fmt::format("{:.1f}", s * 1e6) : "failed"; }

std::string failures(const std::vector<TunedPass>& passes) {
  std::string lines;
  for (const TunedPass& p : passes)
    for (const TunedEngine& e : p.engines)
      if (!e.failure.empty())
        lines += fmt::format("{}, {}: {} failed: {}\n", p.node, p.pass, e.engine, e.failure);
  return lines;
}

}  // namespace

std::string describe(const std::vector<TunedPass>& passes) {
  using enum Table::Align;
  Table table({{"node", left},
               {"input", left},
               {"nodes"},
               {"pass", left},
               {"by rule", left},
               {"us"},
               {"fastest", left},
               {"us"},
               {"ratio"}});
  double by_rule_s = 0, fastest_s = 0;
  for (const TunedPass& p : passes) {
    const bool counts = std::isfinite(p.by_rule().seconds);
    by_rule_s += counts ? p.nodes * p.by_rule().seconds : 0;
    fastest_s += counts ? p.nodes * p.fastest().seconds : 0;
    table.add({p.node, p.input.str(), std::to_string(p.nodes), p.pass, p.by_rule().engine,
               microseconds(p.by_rule().seconds), p.fastest().engine, microseconds(p.fastest().seconds),
               counts ? fmt::format("{:.2f}", p.by_rule().seconds / p.fastest().seconds) : "-"});
  }
  return fmt::format(
      "Engines of each pass, as timed one by one\n{}\n{}"
      "All of them, one micro-batch: {} ms by the rule, {} ms by the fastest ({:.2f} times as fast).\n"
      "Training goes by the rule: what is timed here may come out otherwise the next time, and bits with "
      "it.\n",
      table.str(), failures(passes), milliseconds(by_rule_s), milliseconds(fastest_s), by_rule_s / fastest_s);
}

}  // namespace antichain
