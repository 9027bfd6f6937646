// This is the table of policies. The orders are in pipeline/schedule/orders/.
#include "pipeline/schedule/policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>

#include "framework/error.h"
#include "framework/known_names.h"
#include "framework/prediction.h"
#include "pipeline/schedule/orders/orders.h"
#include "pipeline/schedule/schedule_passes.h"

namespace antichain {
namespace {

constexpr std::string_view narayanan_2019 =
    "Narayanan et al., \"PipeDream: Generalized Pipeline Parallelism for DNN Training\", SOSP 2019";
constexpr std::string_view narayanan_2021 =
    "Narayanan et al., \"Memory-Efficient Pipeline-Parallel DNN Training\", ICML 2021";
constexpr std::string_view qi_2024 = "Qi et al., \"Zero Bubble Pipeline Parallelism\", ICLR 2024";
constexpr std::string_view qi_2024_memory =
    "Qi et al., \"Pipeline Parallelism with Controllable Memory\", NeurIPS 2024";

constexpr Policy table[] = {
    {.name = "1f1b",
     .citation = narayanan_2021,
     .orders = orders::one_f_one_b,
     .in_flight = one_f_one_b_in_flight},
    {.name = "gpipe",
     .citation = "Huang et al., \"GPipe: Efficient Training of Giant Neural Networks using Pipeline "
                 "Parallelism\", NeurIPS 2019",
     .placement = Placement::any,
     .orders = orders::all_forwards_first,
     .in_flight = all_in_flight},
    {.name = "zb-h1",
     .citation = qi_2024,
     .halves = true,
     .replicas = false,
     .orders = orders::zero_bubble_h1,
     .in_flight = orders::zero_bubble_h1_in_flight},
    {.name = "zb-h2",
     .citation = qi_2024,
     .halves = true,
     .replicas = false,
     .orders = orders::zero_bubble_h2,
     .in_flight = orders::zero_bubble_h2_in_flight},
    {.name = "interleaved",
     .citation = "Narayanan et al., \"Efficient Large-Scale Language Model Training on GPU Clusters Using "
                 "Megatron-LM\", SC 2021",
     .replicas = false,
     .placement = Placement::loop,
     .orders = orders::interleaved,
     .next_microbatches = orders::whole_groups},
    {.name = "zb-v",
     .citation = qi_2024_memory,
     .halves = true,
     .replicas = false,
     .placement = Placement::vee,
     .orders = orders::zero_bubble_v},
    {.name = "v-half",
     .citation = qi_2024_memory,
     .halves = true,
     .replicas = false,
     .placement = Placement::vee,
     .orders = orders::v_half},
    {.name = "v-min",
     .citation = qi_2024_memory,
     .halves = true,
     .replicas = false,
     .placement = Placement::vee,
     .orders = orders::v_min},
    {.name = "dualpipe-v",
     .citation = "DeepSeek-AI, \"DeepSeek-V3 Technical Report\", 2024",
     .halves = true,
     .replicas = false,
     .placement = Placement::vee,
     .orders = orders::dual_pipe_v,
     .next_microbatches = orders::two_a_rank},
    {.name = "2bw",
     .citation = narayanan_2021,
     .delay = orders::one_update,
     .orders = orders::without_flush,
     .in_flight = one_f_one_b_in_flight,
     .next_microbatches = orders::one_a_rank},
    {.name = "pipedream",
     .citation = narayanan_2019,
     .replicas = false,
     .delay = orders::stages_behind,
     .orders = orders::without_flush,
     .in_flight = one_f_one_b_in_flight,
     .next_microbatches = orders::one_microbatch},
    {.name = "stale",
     .citation = narayanan_2019,
     .replicas = false,
     .delay = orders::stages_behind,
     .stashes = false,
     .orders = orders::without_flush,
     .in_flight = one_f_one_b_in_flight,
     .next_microbatches = orders::one_microbatch},
    {.name = "forward-only",
     .trains = false,
     .placement = Placement::any,
     .orders = orders::only_forwards,
     .in_flight = orders::one_in_flight},
};

constexpr const Policy* find(std::string_view name) {
  for (const Policy& row : table)
    if (row.name == name) return &row;
  return nullptr;
}

std::vector<std::string> names_where(const std::function<bool(const Policy&)>& holds) {
  std::vector<std::string> names;
  for (const Policy& row : table)
    if (holds(row)) names.emplace_back(row.name);
  return names;
}

// Returns "1f1b", or "1f1b, gpipe or zb-h1".
std::string in_words(const std::vector<std::string>& names) {
  if (names.size() == 1) return names.front();
  return fmt::format("{} or {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

}  // namespace

constinit const Policy Policy::one_f_one_b = *find("1f1b");
constinit const Policy Policy::gpipe = *find("gpipe");
constinit const Policy Policy::zero_bubble_h1 = *find("zb-h1");
constinit const Policy Policy::forward_only = *find("forward-only");

Policy Policy::predicting(const PredictionMethod* method) const {
  Policy changed = *this;
  if (method) changed.predict = method, changed.stashes = method->stashes;
  return changed;
}

ComputeOrders Policy::compute_orders(const Seats& seats) const {
  std::vector<std::vector<int>> stages;
  for (const RankSeats& of_rank : seats) {
    stages.emplace_back();
    for (const Seat& seat : of_rank) {
      stages.back().push_back(seat.stage);
      if (seat.replicas > 1 && !replicas)
        throw Error(fmt::format("{} is an order for one rank a stage, but stage {} of the plan has {}", name,
                                seat.stage, seat.replicas),
                    "choose another schedule, or plan without replicas", ExitCode::usage);
    }
  }
  const bool alone = asynchronous() && seats.size() == 1;  // it has the delays of all its stages
  if (!alone) check_placement(placement, stages, name);
  check_microbatches(seats.front().front().microbatches_of_step(), int(seats.size()));
  return orders(seats);
}

void Policy::check_microbatches(int microbatches, int ranks) const {
  const int next = next_microbatches ? next_microbatches(microbatches, ranks) : microbatches;
  if (next != microbatches)
    throw Error(fmt::format("{} can't be run with {} micro-batch{} on {} rank{}", name, microbatches,
                            microbatches == 1 ? "" : "es", ranks, ranks == 1 ? "" : "s"),
                fmt::format("give --microbatches {}, {}", next,
                            next > microbatches ? "the next number that it can" : "the only number"),
                ExitCode::usage);
}

InFlight Policy::in_flight_on(int ranks, int chunks, int microbatches) const {
  if (in_flight) return in_flight;
  std::vector<std::vector<int>> of_stage;
  for (int s = 0; s < ranks * chunks; ++s) of_stage.push_back({position_of_stage(placement, s, ranks)});
  std::vector<std::vector<Action>> actions;
  for (ComputeOrder& order : compute_orders(seats(of_stage, microbatches)))
    actions.push_back(std::move(order.actions));
  return in_flight_of(actions);
}

InFlight in_flight_of(const std::vector<std::vector<Action>>& ranks) {
  auto most = std::make_shared<std::map<int, int>>();  // by stage
  for (const std::vector<Action>& of_rank : ranks) {
    std::map<int, int> alive;
    for (const Action& a : of_rank) {
      int& now = alive[a.stage];
      now += a.verb == Verb::forward;
      (*most)[a.stage] = std::max((*most)[a.stage], now);
      now -= a.verb == Verb::backward || a.verb == Verb::backward_weight;
    }
  }
  // Where no stage has replicas, its number is that of the devices of the stages before.
  return [most](const PipelinePlace& at) { return most->at(at.devices - at.devices_left); };
}

std::span<const Policy> policies() { return table; }

const Policy& policy(std::string_view name) {
  if (const Policy* row = find(name)) return *row;
  refuse_name("schedule", std::string(name), names_where([](const Policy&) { return true; }));
}

std::vector<std::string> training_policies() {
  return names_where([](const Policy& row) { return row.trains; });
}

std::vector<std::string> synchronous_policies() {
  return names_where([](const Policy& row) { return row.trains && !row.asynchronous(); });
}

std::string training_policies_in_words() { return in_words(training_policies()); }

std::string asynchronous_policies_in_words() { return in_words(names_where(&Policy::asynchronous)); }

std::string policies_in_words(Placement placement) {
  return in_words(names_where([&](const Policy& row) { return row.placement == placement; }));
}

bool is_training_policy(std::string_view name) {
  const Policy* row = find(name);
  return row && row->trains;
}

}  // namespace antichain
