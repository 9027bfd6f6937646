// A ScheduleChoice is a schedule that was asked for by name: a policy's, whose order is fixed, or `auto`,
// whose order is searched for the plan. It makes the plan and the schedule for both, and it judges plans that
// were made before. All planning begins here.
//
// A plan keeps the bound that its search has proved, and a hash of what the bound was proved for: the costs
// of the network, the cluster, the objective, the number of devices of each stage, and what the objective
// depends on besides. Whoever reads the plan for the same gets the bound, and nobody searches again.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "partition/plan/method.h"
#include "partition/plan/recompute.h"
#include "pipeline/planning/cut_and_order.h"
#include "pipeline/planning/order_search.h"
#include "pipeline/schedule/policy.h"

namespace antichain {

struct LeastMemory;

constexpr std::string_view planned_order = "auto";

// Returns the names that a schedule to train with can have.
std::vector<std::string> schedule_names();

struct ScheduleChoice {
  std::string name{Policy::one_f_one_b.name};
  // With `auto` this is the most micro-batches in flight, one number for all ranks or one for each. Where it
  // is empty, default_in_flight says it.
  std::vector<int> in_flight = {};
  // Whether `auto` may give each rank two stages, too.
  bool two_stages = false;
  // Whether limits of memory are for what the formula counts alone (partition/plan/stage_cost.h).
  bool by_formula = false;
  // How an asynchronous policy predicts its weights, where it does.
  const PredictionMethod* predict = nullptr;
  // What the stages that are planned here recompute. PlanOptions::recompute is set where that is `automatic`.
  Recomputation recomputation = {};
  // The orders that were found so far, for all copies of this choice.
  std::shared_ptr<OrderMemo> memo = std::make_shared<OrderMemo>();

  bool planned() const { return name == planned_order; }
  // Returns the policy that stages are cut for: the named one, or zb-h1 for `auto`. That one parts backwards
  // and allows every rank the same memory.
  Policy policy() const;

  // Returns what is minimised. Where steps overlap, `auto` orders a step for its period, so it cuts for the
  // period, too, where the makespan was asked for. Asynchronous steps take as long as the slowest stage or
  // link, so a plan for them has the smallest of these where a step or period was asked for.
  Objective objective(const PlanOptions&) const;

  // Plans as plan_network does, by that objective. Where the compiled program of the plan does not fit its
  // devices, cuts are searched again for what it takes (pipeline/planning/search_again.h). Throws Error where
  // none is found that fits; it names the smallest memory for which one is. With `auto` stages are cut for
  // 1f1b as well, which needs less memory, and cut and order are searched together
  // (pipeline/planning/cut_and_order.h). Where ranks may have two stages, they are cut for each named
  // schedule that gives them two. The best plan that fits is kept. The plan's step is that of its order,
  // which `schedule` returns without another search. Its bound holds for any such plan and any order.
  Plan plan(const Profile&, const PlanOptions&, Method) const;
  // Returns a plan and an order that `auto` can have, found at first sight: it orders what is cut by the
  // bottleneck for one stage a rank and for two, a little. It begins nothing after so many seconds. Returns
  // nothing where none fits.
  std::optional<CutAndOrder> glance(const Profile&, const PlanOptions&, double seconds) const;
  // Returns the stages of a given plan with their costs and their step, that of `schedule` where one is
  // given. A plan from a file says what is done where. What that costs depends on the cluster and the step,
  // and an edited plan's figures are out of date. The plan's own number of stages replaces that of the
  // options. It keeps its bound where that was proved for the same, and else has none (0). Throws Error when
  // stages do not fit their device.
  Plan judge(const Profile&, const Plan& given, const PlanOptions&,
             const std::optional<Schedule>& schedule = {}) const;
  // For `auto` it searches the order where `plan` has not, for the step or the period as options.steps says.
  Schedule schedule(const Profile&, const Plan&, const PlanOptions&) const;
  // Returns the limits of `auto` by rank. Throws a usage Error when there is another number of them.
  std::vector<int> limits(const Profile&, const Plan&, const PlanOptions&) const;

 private:
  // `auto` searches only for PlanOptions::most_in_flight, where that is given. Returns nothing where none
  // was found whose program fits.
  std::optional<Plan> search(const Profile&, const PlanOptions&, Method) const;
  std::optional<Plan> search_cuts(const Profile&, const PlanOptions&, Method) const;
  std::optional<Plan> search_policy(const Profile&, const PlanOptions&, Method, const Policy&) const;
  std::optional<Plan> search_orders(const Profile&, PlanOptions, Method) const;
  LeastMemory least_memory(const Profile&, const PlanOptions&, Method) const;
  CutAndOrder together(const Profile&, const PlanOptions&, const Policy&) const;
  PlannedOrder order(const Profile&, const Plan&, const PlanOptions&, OrderRequest) const;
  std::vector<int> given_limits(int ranks) const;
};

}  // namespace antichain
