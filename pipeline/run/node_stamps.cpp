#include "pipeline/run/node_stamps.h"

#include <algorithm>

#include "pipeline/host/median.h"

namespace antichain {
namespace {

// A node is some kernels and two stamps; the queue of a stream has room for a thousand things or so.
constexpr int nodes_at_once = 32;

}  // namespace

void NodeStamps::begin(NodeId id, Verb verb, int microbatch) {
  if (!holds_) {
    device_.hold();
    holds_ = true;
    held_ = 0;
    const Stamp first = device_.stamp();
    empty_.push_back({first, device_.stamp()});
  }
  stamped_.push_back({id, verb, microbatch, device_.stamp(), nullptr});
}

void NodeStamps::end() {
  stamped_.back().end = device_.stamp();
  if (++held_ == nodes_at_once) let_go();
}

void NodeStamps::let_go() {
  if (!holds_) return;
  holds_ = false;
  device_.let_go();
}

void NodeStamps::finish() {
  if (stamped_.empty()) return;
  const auto seconds = [&](const Stamp& begin, const Stamp& end) {
    return device_.at_s(end) - device_.at_s(begin);
  };
  std::vector<double> nothing_s;
  for (const auto& [begin, end] : empty_) nothing_s.push_back(seconds(begin, end));
  const double stamp_s = median(nothing_s);
  for (const Stamped& s : stamped_)
    clock_(s.id, s.verb, s.microbatch, std::max(0.0, seconds(s.begin, s.end) - stamp_s));
}

}  // namespace antichain
