#include "pipeline/run/message_turns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>

#include "framework/random.h"
#include "pipeline/schedule/lane.h"
#include "pipeline/simulate/message_order.h"
#include "pipeline/transport/agree.h"

namespace antichain {

std::vector<Turn> turns_of(const std::vector<int>& order, const RankProgram& program,
                           const SumTurns& of_sum) {
  std::vector<Turn> turns;
  std::set<int> scattered;
  for (const int index : order) {
    const Instruction& a = program.instructions[size_t(index)];
    if (a.verb == Verb::reduce) {
      const std::vector<Turn> half = of_sum(std::max(a.bucket, 0), scattered.insert(index).second);
      turns.insert(turns.end(), half.begin(), half.end());
      continue;
    }
    turns.push_back(
        {a.verb == Verb::send, {a.channel, a.microbatch}, a.peer, 0, lane_of_flow(a.message.flow)});
  }
  return turns;
}

// The times of any cluster give a safe order. The profile's own link, which all ranks know, gives a good one.
std::vector<Turn> agreed_turns(const Program& program, const Plan& plan, const Profile& profile, Job& job,
                               const SumTurns& of_sum) {
  const auto order =
      issue_order(message_order(program, plan, profile, one_link(profile.link)), int(program.ranks.size()));
  std::string all;
  for (const auto& indices : order) all += fmt::format("{}\n", fmt::join(indices, " "));
  agree(job, "the order of messages", fmt::format("{:016x}", hash_bytes(all)));
  return turns_of(order[size_t(job.rank())], program.ranks[size_t(job.rank())], of_sum);
}

}  // namespace antichain
