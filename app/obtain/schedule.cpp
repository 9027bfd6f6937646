#include "app/obtain/schedule.h"

#include <fmt/format.h>

#include "app/cli/number_text.h"
#include "framework/error.h"
#include "pipeline/schedule/policy.h"

namespace antichain {

Schedule obtain_schedule(const GivenFiles& given, const std::string& name, const Profile& profile,
                         const Plan& plan, int microbatches) {
  if (is_training_policy(name)) return make_schedule(profile, plan, policy(name), microbatches);
  const Schedule schedule = parse_schedule(given.schedule, name);
  if (schedule.microbatches != microbatches) {
    throw Error(fmt::format("{} is a schedule of {}", name,
                            counted(schedule.microbatches, "micro-batch", "micro-batches")),
                fmt::format("give --microbatches {}", schedule.microbatches), ExitCode::usage);
  }
  if (int(schedule.ranks.size()) != plan.ranks()) {
    throw Error(fmt::format("{} is a schedule of {}, but the plan has {}", name,
                            counted(int64_t(schedule.ranks.size()), "rank"), plan.ranks()),
                "write it again by antichain simulate --write-schedule", ExitCode::usage);
  }
  validate(schedule, profile, plan);
  return schedule;
}

Schedule obtain_training_schedule(const GivenFiles& given, const std::string& name, const Profile& profile,
                                  const Plan& plan, int microbatches) {
  const Schedule schedule = obtain_schedule(given, name, profile, plan, microbatches);
  if (!learns(schedule))
    throw Error(fmt::format("{} has no backward: it evaluates, and trains nothing", name),
                "write a schedule to train with by antichain simulate --write-schedule");
  return schedule;
}

}  // namespace antichain
