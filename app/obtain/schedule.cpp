#include "app/obtain/schedule.h"

#include <fmt/format.h>

#include "app/cli/number_text.h"
#include "framework/error.h"
#include "pipeline/planning/memory_fit.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/schedule/schedule_csv.h"
#include "pipeline/transport/agree.h"

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

Schedule obtain_schedule(const GivenFiles& given, const PlanTask& task, const Profile& profile,
                         const Plan& plan) {
  const std::string& name = task.schedule;
  const int microbatches = task.options.microbatches;
  const bool shared = name == planned_order && !given.schedule.empty();  // by rank 0
  if (!shared && (name == planned_order || is_training_policy(name)))
    return task.choice.schedule(profile, plan, task.options);
  if (name.ends_with(csv_ending)) {
    const CsvSchedule csv = parse_csv(given.schedule, name);
    check_microbatches(csv.microbatches, microbatches, name);
    return make_schedule(profile, plan, csv, name);
  }
  const Schedule schedule = parse_schedule(given.schedule, name);
  check_microbatches(schedule.microbatches_of_step(), microbatches, name);
  if (int(schedule.ranks.size()) != plan.ranks()) {
    throw Error(fmt::format("{} is a schedule of {}, but the plan has {}", name,
                            counted(int64_t(schedule.ranks.size()), "rank"), plan.ranks()),
                "write it again by antichain simulate --write-schedule", ExitCode::usage);
  }
  validate(schedule, profile, plan);
  check_program(schedule, plan, profile, task.options.cluster);
  return schedule;
}

GivenFiles broadcast_order(GivenFiles given, const PlanTask& task, const Profile& profile, const Plan& plan,
                           Job& job) {
  if (task.schedule != planned_order) return given;
  given.schedule = on_rank_zero(job, [&] {
    job.activity().doing("planning the order of micro-batches");
    const Progress::Computing computing(job.activity());
    return print(obtain_schedule(given, task, profile, plan));
  });
  return given;
}

Schedule obtain_training_schedule(const GivenFiles& given, const PlanTask& task, const Profile& profile,
                                  const Plan& plan) {
  const std::string& name = task.schedule;
  const Schedule schedule = obtain_schedule(given, task, profile, plan);
  if (!learns(schedule))
    throw Error(fmt::format("{} has no backward: it evaluates, and trains nothing", name),
                "write a schedule to train with by antichain simulate --write-schedule");
  return schedule;
}

}  // namespace antichain
