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
    i.behind = done - i.step + (newest ? 0 : schedule.delay(i.stage));
    if (i.behind < 0)
      throw Error(fmt::format("schedule: {} reads weights that no update before it has made", print(i)),
                  "put the update before it, or give a larger delay", ExitCode::usage);
  }
}

std::map<int, int> older_versions(const Schedule& schedule, const Plan& plan, int rank) {
  std::map<int, int> of_node;
  for (const int s : stages_of_rank(plan, rank))
    for (const int n : plan.stages[size_t(s)].nodes)
      if (schedule.delay(s) > 0) of_node[n] = schedule.delay(s);
  return of_node;
}

}  // namespace antichain
