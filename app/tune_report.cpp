#include "app/tune_report.h"

#include <fmt/format.h>

#include "app/table.h"

namespace antichain {
namespace {

std::string microseconds(double s) { return fmt::format("{:.1f}", s * 1e6); }

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
    by_rule_s += p.nodes * p.by_rule().seconds;
    fastest_s += p.nodes * p.fastest().seconds;
    table.add({p.node, p.input.str(), std::to_string(p.nodes), p.pass, p.by_rule().engine,
               microseconds(p.by_rule().seconds), p.fastest().engine, microseconds(p.fastest().seconds),
               fmt::format("{:.2f}", p.by_rule().seconds / p.fastest().seconds)});
  }
  return fmt::format(
      "Engines of each pass, as timed one by one\n{}\n"
      "All of them, one micro-batch: {} ms by the rule, {} ms by the fastest ({:.2f} times as fast).\n"
      "Training goes by the rule: what is timed here may come out otherwise the next time, and bits with "
      "it.\n",
      table.str(), milliseconds(by_rule_s), milliseconds(fastest_s), by_rule_s / fastest_s);
}

}  // namespace antichain
