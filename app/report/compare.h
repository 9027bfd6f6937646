// A Comparison sets all methods side by side, on one network and one cluster.
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
  // Throws the requested method's Error when no method has a plan.
  Comparison(const Profile&, const PlanTask&);

  // Returns a table of one row per method, with the best one marked, and below it why a method has no plan.
  std::string str() const;
  // Throws the method's Error where it has no plan.
  const Plan& plan(Method) const;

 private:
  struct Row {
    PlanTask task;
    std::optional<Plan> plan;
    std::optional<Error> refusal;
    // The replicas are the requested ones. Only then is the row ranked, and only then does the searched bound
    // hold.
    bool asked = true;
  };
  const Row& row(Method) const;
  const Row* best() const;  // of the plans with the requested replicas
  double gap(const Row&) const;
  std::vector<std::string> cells(const Row&) const;
  std::string legend() const;
  std::string memory_table() const;

  const Profile& profile_;
  const PlanTask& task_;
  std::vector<Row> rows_;
};

}  // namespace antichain
