#include "pipeline/program/weight_versions.h"

#include <fmt/format.h>

#include "framework/error.h"

namespace antichain {

void add_versions(RankProgram& rank, const Schedule& schedule) {
  std::map<int, int> updates;  // so far, by stage
  for (Instruction& i : rank.instructions) {
    int& done = updates[i.stage];
    i.step = i.microbatch < 0 ? done : i.microbatch / schedule.microbatches_of_step();
    if (i.verb == Verb::update) ++done;
    if (!computes(i.verb)) continue;
    const bool newest = i.verb != Verb::forward && !schedule.stashes;
    const int delay = newest ? 0 : schedule.delay(i.stage);
    i.weights = {.behind = done - i.step + delay, .ahead = schedule.predict ? delay : 0};
    if (i.weights.behind < 0)
      throw Error(fmt::format("schedule: {} reads weights that no update before it has made", print(i)),
                  "put the update before it, or give a larger delay", ExitCode::usage);
  }
}

KeptVersions kept_versions(const Schedule& schedule, const Plan& plan, int rank) {
  KeptVersions kept{.predict = schedule.predict};
  for (const int s : stages_of_rank(plan, rank))
    for (const int n : plan.stages[size_t(s)].nodes)
      if (schedule.delay(s) > 0) kept.older[n] = schedule.delay(s);
  return kept;
}

}  // namespace antichain
