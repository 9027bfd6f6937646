// All methods side by side, on one network and one cluster.
//
//   antichain       as asked for
//   pipedream       with replicas only where they are left to the method (--replicas auto)
//   data-parallel   every device a replica, always
//   the others      one device a stage, always
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/obtain/plan_task.h"
#include "framework/error.h"

namespace antichain {

class Comparison {
 public:
  // Error as the asked method's when not one has a plan.
  Comparison(const Profile&, const PlanTask&);

  // One row a method, the best marked; below, why a method has no plan.
  std::string str() const;
  // Error as the method's, where it has none.
  const Plan& plan(const std::string& method) const;

 private:
  struct Row {
    PlanTask task;
    std::optional<Plan> plan;
    std::optional<Error> refusal;
    // Its replicas are what was asked for: it is ranked, and the searched bound holds for it.
    bool asked = true;
  };
  const Row& row(const std::string& method) const;
  const Row* best() const;  // of the plans whose replicas are what was asked for
  double gap(const Row&) const;
  std::vector<std::string> cells(const Row&) const;
  std::string legend() const;
  std::string memory_table() const;

  const Profile& profile_;
  const PlanTask& task_;
  std::vector<Row> rows_;
};

}  // namespace antichain
