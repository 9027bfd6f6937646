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
  if (of_rank.size() > 1)
    throw Error(fmt::format("1f1b is an order for one stage a rank, but the plan gives a rank {} stages",
                            of_rank.size()),
                "choose another schedule, or plan with one stage a rank", ExitCode::usage);
  const Seat& seat = of_rank.front();
  const int lead = one_f_one_b_in_flight(seat.microbatches, seat.devices_left, seat.replicas);
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

int one_in_flight(int, int, int) { return 1; }

constexpr Policy table[] = {
    {.name = "1f1b",
     .citation = "Narayanan et al., \"Memory-Efficient Pipeline-Parallel DNN Training\", ICML 2021",
     .order = one_f_one_b,
     .in_flight = one_f_one_b_in_flight},
    {.name = "gpipe",
     .citation = "Huang et al., \"GPipe: Efficient Training of Giant Neural Networks using Pipeline "
                 "Parallelism\", NeurIPS 2019",
     .order = all_forwards_first,
     .in_flight = all_in_flight},
    {.name = "forward-only", .trains = false, .order = forwards, .in_flight = one_in_flight},
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
