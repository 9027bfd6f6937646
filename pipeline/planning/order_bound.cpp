#include "pipeline/planning/order_bound.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

namespace antichain {
namespace {

constexpr double no_way_s = -std::numeric_limits<double>::infinity();  // of a way that is not there

class OrderBounds {
 public:
  OrderBounds(const OrderEstimate& estimate, const std::vector<int>& in_flight)
      : estimate_(estimate), in_flight_(in_flight), trip_(size_t(estimate.stages()), 0) {
    for (int s = estimate.stages() - 1; s >= 0; --s)
      for (const Transfer& there : estimate.tensors())
        for (const Transfer& back : estimate.gradients())
          if (there.from == s && back.to == s && back.from == there.to)
            trip_[size_t(s)] =
                std::max(trip_[size_t(s)], there.seconds + forward_s(there.to) + trip_[size_t(there.to)] +
                                               input_s(there.to) + back.seconds);
  }

  double step_s() const {
    const Ways ways = ways_of_a_step();
    double bound_s = 0;
    for (int rank = 0; several() && rank < estimate_.ranks(); ++rank)
      bound_s = std::max(bound_s, done_s(rank, ways.fill));
    for (int s = 0; s < estimate_.stages(); ++s)
      bound_s = std::max(bound_s,
                         ways.fill[size_t(s)] + (several() ? forward_s(s) + input_s(s) + ways.tail[size_t(s)]
                                                           : std::max(load_s(s), back_s(ways, s))));
    return bound_s;
  }

  double period_s() const {
    std::vector<double> busy_s(size_t(estimate_.links()) + 1, 0);
    for (const std::vector<Transfer>* transfers : {&estimate_.tensors(), &estimate_.gradients()})
      for (const Transfer& transfer : *transfers) busy_s[size_t(transfer.link + 1)] += M() * transfer.seconds;
    double bound_s = std::ranges::max(busy_s);
    if (several()) {
      std::vector<int> roots(size_t(estimate_.ranks()));  // each rank's first stage
      for (int s = estimate_.stages() - 1; s >= 0; --s) roots[size_t(estimate_.rank_of(s))] = s;
      for (int rank = 0; rank < estimate_.ranks(); ++rank)
        bound_s = std::max(bound_s, done_s(rank, ways_from(roots[size_t(rank)]).fill));
      return bound_s;
    }
    for (int root = 0; root < estimate_.stages(); ++root) {
      const Ways ways = ways_from(root);
      bound_s = std::max(bound_s, load_s(root));
      for (int s = root; s < estimate_.stages(); ++s)
        bound_s = std::max(bound_s, ways.fill[size_t(s)] + back_s(ways, s));
    }
    return bound_s;
  }

 private:
  // Ways are times by stage: `fill` is the earliest begin, and `tail` is the time from the end of the stage's
  // last gradient to the end of what is bounded.
  struct Ways {
    std::vector<double> fill, tail;
  };

  bool several() const { return estimate_.ranks() < estimate_.stages(); }
  // Returns when a rank is done at the earliest, whose stages begin at these times at the earliest. Whatever
  // time one of its forwards or backwards begins at, what can't begin before is still to be done.
  double done_s(int rank, const std::vector<double>& fill) const {
    std::vector<std::pair<double, double>> begins;  // with the work that begins then
    for (int s = 0; s < estimate_.stages(); ++s) {
      if (estimate_.rank_of(s) != rank) continue;
      const double forward = std::max(0., fill[size_t(s)]);
      const double backward = std::max(0., fill[size_t(s)] + forward_s(s) + trip_[size_t(s)]);
      begins.emplace_back(forward, M() * forward_s(s));
      begins.emplace_back(backward, M() * (input_s(s) + weight_s(s)) + estimate_.times(s).update_s);
    }
    std::ranges::sort(begins, std::ranges::greater());
    double bound_s = 0, left_s = 0;
    for (const auto& [begin, work] : begins) bound_s = std::max(bound_s, begin + (left_s += work));
    return bound_s;
  }

  int M() const { return estimate_.microbatches(); }
  int limit(int s) const { return std::min(in_flight_[size_t(s)], M()); }
  double forward_s(int s) const { return estimate_.times(s).forward_s; }
  double input_s(int s) const { return std::min(estimate_.times(s).input_s, estimate_.times(s).backward_s); }
  double weight_s(int s) const {
    const StageTimes& t = estimate_.times(s);
    return std::max(0., std::min(t.weight_s, t.backward_s - t.input_s));
  }
  double own_tail_s(int s) const { return weight_s(s) + estimate_.times(s).update_s; }

  // These are counted from the stage's first forward. The second ends with the way back.
  double gradients_s(int s) const {
    const double idle_s = std::max(0., trip_[size_t(s)] - (limit(s) - 1) * forward_s(s));
    return M() * (forward_s(s) + input_s(s)) + idle_s;
  }
  double load_s(int s) const { return gradients_s(s) + M() * weight_s(s) + estimate_.times(s).update_s; }
  double back_s(const Ways& ways, int s) const {
    const int L = limit(s), rounds = (M() + L - 1) / L, before = (M() - 1) % L;
    const double round_s = forward_s(s) + trip_[size_t(s)] + input_s(s);
    const double trips_s = before * forward_s(s) + rounds * round_s + (rounds - 1) * weight_s(s);
    return std::max(gradients_s(s) + (M() - L) * weight_s(s), trips_s) + ways.tail[size_t(s)];
  }

  Ways ways_of_a_step() const {
    Ways ways{std::vector<double>(size_t(estimate_.stages()), 0),
              std::vector<double>(size_t(estimate_.stages()))};
    for (int s = 0; s < estimate_.stages(); ++s) {
      ways.tail[size_t(s)] = own_tail_s(s);
      follow(ways, s);
    }
    return ways;
  }

  // Returns the ways from the root's first forward, and back to the end of its update.
  Ways ways_from(int root) const {
    Ways ways{std::vector<double>(size_t(estimate_.stages()), no_way_s),
              std::vector<double>(size_t(estimate_.stages()), no_way_s)};
    ways.fill[size_t(root)] = 0;
    ways.tail[size_t(root)] = own_tail_s(root);
    for (int s = root + 1; s < estimate_.stages(); ++s) follow(ways, s);
    return ways;
  }

  // Makes the ways to the stage and from it longer where those by an earlier stage are.
  void follow(Ways& ways, int s) const {
    for (const Transfer& w : estimate_.tensors())
      if (w.to == s)
        ways.fill[size_t(s)] =
            std::max(ways.fill[size_t(s)], ways.fill[size_t(w.from)] + forward_s(w.from) + w.seconds);
    for (const Transfer& w : estimate_.gradients())
      if (w.from == s)
        ways.tail[size_t(s)] =
            std::max(ways.tail[size_t(s)], w.seconds + input_s(w.to) + ways.tail[size_t(w.to)]);
  }

  const OrderEstimate& estimate_;
  const std::vector<int>& in_flight_;
  std::vector<double> trip_;  // from the end of a micro-batch's forward to the beginning of its input half
};

}  // namespace

double order_bound_s(const OrderEstimate& estimate, const std::vector<int>& in_flight, Steps steps) {
  const OrderBounds bounds(estimate, in_flight);
  return (steps == Steps::apart ? bounds.step_s() : bounds.period_s()) * (1 - 1e-12);
}

}  // namespace antichain
