// The policies: for each a function that says in which order a rank computes, and a row of the table below.
// Backwards ascend in every policy, because weight gradients accumulate in micro-batch order; S stages, stage
// s, M micro-batches.
//
//   1F1B, S = 3, M = 4               GPipe
//   stage 0  F0 F1 F2 B0 F3 B1 B2 B3    F0 F1 F2 F3 B0 B1 B2 B3
//   stage 1  F0 F1 B0 F2 B1 F3 B2 B3    F0 F1 F2 F3 B0 B1 B2 B3
//   stage 2  F0 B0 F1 B1 F2 B2 F3 B3    F0 F1 F2 F3 B0 B1 B2 B3
//
// Replicas do the same with their part. The first stage on two devices, the second on one, 1F1B, M = 5:
//
//   stage 0  F0 F2 B0 F4 B2 B4          2 of each in flight: 3 devices from here on, shared by 2 replicas
//            F1 F3 B1 B3
//   stage 1  F0 B0 F1 B1 F2 B2 F3 B3 F4 B4
#include "pipeline/schedule/policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "framework/error.h"
#include "pipeline/schedule/schedule_passes.h"

namespace antichain {
namespace {

// `lead` forwards first, then backwards and forwards in turn: never more than `lead` micro-batches in flight.
std::vector<Action> forwards_ahead(const Seat& seat, int lead) {
  std::vector<Action> order;
  const int count = seat.count();
  order.reserve(2 * size_t(count));
  const auto add = [&](Verb verb, int n) { order.push_back({verb, seat.stage, seat.microbatch(n)}); };
  for (int n = 0; n < lead; ++n) add(Verb::forward, n);
  for (int n = 0; n < count; ++n) {
    add(Verb::backward, n);
    if (n + lead < count) add(Verb::forward, n + lead);
  }
  return order;
}

// Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP 2019, made
// synchronous by a flush. The replicas of a stage together begin at least as many micro-batches as there are
// devices left: each begins one more than all the next stage may ask for, so that nobody waits forever.
std::vector<Action> one_f_one_b(const std::vector<Seat>& of_rank) {
  const Seat& seat = of_rank.front();
  const int lead = one_f_one_b_in_flight({seat.microbatches, seat.devices, seat.devices_left, seat.replicas});
  return forwards_ahead(seat, std::min(seat.count(), lead));
}

void add_all(std::vector<Action>& order, Verb verb, const Seat& seat) {
  for (int n = 0; n < seat.count(); ++n) order.push_back({verb, seat.stage, seat.microbatch(n)});
}

// Stage by stage, where a rank has several.
std::vector<Action> forwards(const std::vector<Seat>& of_rank) {
  std::vector<Action> order;
  for (const Seat& seat : of_rank) add_all(order, Verb::forward, seat);
  return order;
}

// GPipe, but with the backwards of a stage ascending. Stages come back in reverse.
std::vector<Action> all_forwards_first(const std::vector<Seat>& of_rank) {
  std::vector<Action> order = forwards(of_rank);
  for (auto seat = of_rank.rbegin(); seat != of_rank.rend(); ++seat) add_all(order, Verb::backward, *seat);
  return order;
}

// Forwards as 1F1B with a warm-up of its own, and input halves in place of backwards. A weight half follows
// each input half as soon as `held` micro-batches are held for theirs; the others come at the end.
//
//   ZB-H1, S = 3, M = 4
//   stage 0  F0 F1 F2 I0 W0 F3 I1 W1 I2 W2 I3 W3
//   stage 1  F0 F1 I0 F2 I1 W0 F3 I2 W1 I3 W2 W3
//   stage 2  F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3
std::vector<Action> weights_later(const Seat& seat, int warm_up, int held) {
  std::vector<Action> order;
  int forwards = 0, weights = 0;
  const auto add = [&](Verb verb, int m) { order.push_back({verb, seat.stage, m}); };
  while (forwards < std::min(warm_up, seat.microbatches)) add(Verb::forward, forwards++);
  warm_up = forwards;
  for (int m = 0; m < seat.microbatches; ++m) {
    if (forwards < seat.microbatches) add(Verb::forward, forwards++);
    add(Verb::backward_input, m);
    if (warm_up + m >= held) add(Verb::backward_weight, weights++);
  }
  while (weights < seat.microbatches) add(Verb::backward_weight, weights++);
  return order;
}

// As many micro-batches in flight as 1F1B has on its fullest rank, but on every rank.
std::vector<Action> zero_bubble_h1(const std::vector<Seat>& of_rank) {
  const Seat& seat = of_rank.front();
  return weights_later(seat, seat.devices_left - 1, seat.devices - 1);
}
int zero_bubble_h1_in_flight(const PipelinePlace& at) { return std::min(at.microbatches, at.devices); }

// About twice as many: then no rank waits from its first forward to its last weight half, where forwards,
// input halves and weight halves take equal times.
std::vector<Action> zero_bubble_h2(const std::vector<Seat>& of_rank) {
  const Seat& seat = of_rank.front();
  return weights_later(seat, 2 * (seat.devices_left - 1), 2 * (seat.devices - 1));
}
int zero_bubble_h2_in_flight(const PipelinePlace& at) {
  return std::min(at.microbatches, 2 * at.devices - 1);
}

int one_in_flight(const PipelinePlace&) { return 1; }

constexpr std::string_view qi_2024 = "Qi et al., \"Zero Bubble Pipeline Parallelism\", ICLR 2024";

constexpr Policy table[] = {
    {.name = "1f1b",
     .citation = "Narayanan et al., \"Memory-Efficient Pipeline-Parallel DNN Training\", ICML 2021",
     .order = one_f_one_b,
     .in_flight = one_f_one_b_in_flight},
    {.name = "gpipe",
     .citation = "Huang et al., \"GPipe: Efficient Training of Giant Neural Networks using Pipeline "
                 "Parallelism\", NeurIPS 2019",
     .several_stages = true,
     .order = all_forwards_first,
     .in_flight = all_in_flight},
    {.name = "zb-h1",
     .citation = qi_2024,
     .halves = true,
     .replicas = false,
     .order = zero_bubble_h1,
     .in_flight = zero_bubble_h1_in_flight},
    {.name = "zb-h2",
     .citation = qi_2024,
     .halves = true,
     .replicas = false,
     .order = zero_bubble_h2,
     .in_flight = zero_bubble_h2_in_flight},
    {.name = "forward-only",
     .trains = false,
     .several_stages = true,
     .order = forwards,
     .in_flight = one_in_flight},
};

constexpr const Policy* find(std::string_view name) {
  for (const Policy& row : table)
    if (row.name == name) return &row;
  return nullptr;
}

}  // namespace

constinit const Policy Policy::one_f_one_b = *find("1f1b");
constinit const Policy Policy::gpipe = *find("gpipe");
constinit const Policy Policy::forward_only = *find("forward-only");

std::vector<Action> Policy::compute_order(const std::vector<Seat>& of_rank) const {
  if (of_rank.size() > 1 && !several_stages)
    throw Error(fmt::format("{} is an order for one stage a rank, but the plan gives a rank {} stages", name,
                            of_rank.size()),
                "choose another schedule, or plan with one stage a rank", ExitCode::usage);
  for (const Seat& seat : of_rank)
    if (seat.replicas > 1 && !replicas)
      throw Error(fmt::format("{} is an order for one rank a stage, but stage {} of the plan has {}", name,
                              seat.stage, seat.replicas),
                  "choose another schedule, or plan without replicas", ExitCode::usage);
  return order(of_rank);
}

std::span<const Policy> policies() { return table; }

const Policy& policy(std::string_view name) {
  if (const Policy* row = find(name)) return *row;
  std::vector<std::string_view> known;
  for (const Policy& row : table) known.push_back(row.name);
  throw Error(fmt::format("unknown schedule \"{}\"", name),
              fmt::format("there are {}", fmt::join(known, ", ")), ExitCode::usage);
}

std::vector<std::string> training_policies() {
  std::vector<std::string> names;
  for (const Policy& row : table)
    if (row.trains) names.emplace_back(row.name);
  return names;
}

std::string training_policies_in_words() {
  const std::vector<std::string> names = training_policies();
  return fmt::format("{} or {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

bool is_training_policy(std::string_view name) {
  const Policy* row = find(name);
  return row && row->trains;
}

}  // namespace antichain
