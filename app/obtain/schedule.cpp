#include "app/obtain/schedule.h"

#include <fmt/format.h>

#include "app/cli/number_text.h"
#include "framework/error.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/schedule/schedule_csv.h"

namespace antichain {
namespace {

constexpr std::string_view csv_ending = ".csv";

void check_microbatches(int has, int asked, const std::string& name) {
  if (has != asked)
    throw Error(fmt::format("{} is a schedule of {}", name, counted(has, "micro-batch", "micro-batches")),
                fmt::format("give --microbatches {}", has), ExitCode::usage);
}

}  // namespace

std::string schedule_text(const Schedule& schedule, const std::string& file) {
  return file.ends_with(csv_ending) ? to_csv(schedule) : print(schedule);
}

Schedule obtain_schedule(const GivenFiles& given, const std::string& name, const Profile& profile,
                         const Plan& plan, int microbatches) {
  if (is_training_policy(name)) return make_schedule(profile, plan, policy(name), microbatches);
  if (name.ends_with(csv_ending)) {
    const CsvSchedule csv = parse_csv(given.schedule, name);
    check_microbatches(csv.microbatches, microbatches, name);
    return make_schedule(profile, plan, csv, name);
  }
  const Schedule schedule = parse_schedule(given.schedule, name);
  check_microbatches(schedule.microbatches, microbatches, name);
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
