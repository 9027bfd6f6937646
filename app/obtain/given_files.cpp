#include "app/obtain/given_files.h"

#include <filesystem>

#include "app/cli/checks.h"
#include "framework/error.h"
#include "framework/json.h"
#include "framework/known_names.h"
#include "partition/plan/cut_file.h"
#include "partition/plan/recompute.h"
#include "partition/profile/cluster.h"
#include "pipeline/planning/schedule_choice.h"
#include "pipeline/transport/agree.h"

namespace antichain {
namespace {

std::string read_schedule(const std::string& name) {
  if (is_training_policy(name) || name == planned_order) return "";
  std::error_code ignored;
  if (!std::filesystem::exists(name, ignored)) {
    std::vector<std::string> known = schedule_names();
    known.push_back("schedule files");
    refuse_name("schedule", name, known);
  }
  return read_file(name);
}

std::string read_cluster(const std::string& file) {
  return file.empty() ? "" : with_profiles(read_file(file), file);
}

std::string read_if_given(const std::string& file) { return file.empty() ? "" : read_file(file); }

// If a file of that name exists, its content is read; otherwise the text is node names.
std::string read_cuts(const std::string& cuts) {
  std::error_code ignored;
  if (cuts.empty() || !std::filesystem::exists(cuts, ignored)) return "";
  const std::string text = read_file(cuts);
  if (parse_cuts(text, cuts).empty()) throw Error(cuts + " has no cuts", "write lines such as \"2: node\"");
  return text;
}

std::string read_recompute(const std::string& name) {
  if (name == "none" || name == "all" || name == "auto") return name;
  std::error_code ignored;
  if (!std::filesystem::exists(name, ignored))
    refuse_name("recomputation", name, {"none", "all", "auto", "files of nodes"});
  const std::string text = read_file(name);
  if (parse_recomputation(text).none())
    throw Error(name + " names no node to recompute", "write one node a line, or give --recompute none");
  return text;
}

}  // namespace

GivenFiles read_given_files(const PlanningOptions& planning, const std::string& schedule) {
  return {.profile = read_if_given(planning.profile_file),
          .plan = read_if_given(planning.plan_file),
          .cluster = read_cluster(planning.cluster_file),
          .cuts = read_cuts(planning.cuts),
          .schedule = read_schedule(schedule),
          .recompute = read_recompute(planning.recompute)};
}

GivenFiles read_given_files(const PlanningOptions& planning, const std::string& schedule,
                            const std::vector<std::string>& outputs, Job& job) {
  GivenFiles mine;
  on_rank_zero(job, [&] {
    check_writable(outputs);
    mine = read_given_files(planning, schedule);
    return "";
  });
  return {.profile = job.broadcast(mine.profile),
          .plan = job.broadcast(mine.plan),
          .cluster = job.broadcast(mine.cluster),
          .cuts = job.broadcast(mine.cuts),
          .schedule = job.broadcast(mine.schedule),
          .recompute = job.broadcast(mine.recompute)};
}

}  // namespace antichain
