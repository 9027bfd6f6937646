// This file calls the passes that make a program of a schedule, one rank after the other.
#include <fmt/format.h>

#include "framework/error.h"
#include "pipeline/program/rings.h"
#include "pipeline/program/stage_operands.h"
#include "pipeline/program/weight_folds.h"
#include "pipeline/program/weight_versions.h"
#include "pipeline/schedule/channels.h"

namespace antichain {
namespace {

BufferId buffer_of(const RankProgram& rank, const Action& message) {
  if (message.message.flow == Flow::weight)
    return rank.weights.at({message.message, message.verb == Verb::send});
  const StageTensors& tensors = rank.stages.at(message.stage);
  if (message.message.flow == Flow::activation) return tensors.output.at(message.message.tensor);
  return (message.verb == Verb::send ? tensors.sent : tensors.received).at(message.message);
}

Instruction instruction(RankProgram& rank, const Action& action, int own, const Channels& channels) {
  Instruction made{action};
  const bool sends = action.verb == Verb::send;
  if (!sends && action.verb != Verb::recv) {
    const Operands& operands = rank.of_compute[{action.stage, action.verb}];
    made.reads = operands.reads;
    made.writes = operands.writes;
    return made;
  }
  made.channel =
      sends ? channels(own, action.peer, action.message) : channels(action.peer, own, action.message);
  Operands& operands = rank.of_messages[{{action.stage, action.message}, sends}];
  std::vector<BufferId>& buffer = sends ? operands.reads : operands.writes;
  if (buffer.empty()) buffer.push_back(buffer_of(rank, action));
  made.reads = operands.reads;
  made.writes = operands.writes;
  return made;
}

// A stage looks for a tensor in one place in all micro-batches.
void check_places(const Crossing& crossing, int microbatches) {
  for (const auto* routes : {&crossing.activations, &crossing.gradients})
    for (const Route& route : *routes)
      for (int m = 1; m < microbatches; ++m)
        if (crossing.stays(route, m) != crossing.stays(route, 0))
          throw Error(
              fmt::format("the plan puts stages {} and {} on one rank for some micro-batches and on two "
                          "for others",
                          route.from_stage, route.to_stage),
              "give a stage that has replicas ranks of its own", ExitCode::usage);
}

}  // namespace

Program compile(const Schedule& schedule, const Profile& profile, const Plan& plan,
                const StepNetwork& network, Mode mode, Feed feed) {
  const Crossing crossing = crossing_of(profile, plan);
  check_places(crossing, schedule.microbatches);
  const Channels channels(schedule);
  Program program{.schedule = &schedule, .channels = channels.count()};
  for (RankSeats& of_rank : seats(crossing.ranks, schedule.microbatches, schedule.steps)) {
    const int r = int(program.ranks.size());
    const std::vector<Action>& actions = schedule.ranks[size_t(r)];
    RankProgram& rank = program.ranks.emplace_back();
    rank.seats = std::move(of_rank);
    for (const Seat& seat : rank.seats)
      StageOperands(rank, network, profile, plan, crossing, actions, seat, mode).add();
    if (mode == Mode::train)
      add_weight_folds(rank, r, schedule.microbatches, network, profile, plan, crossing);
    for (const Action& action : actions) rank.instructions.push_back(instruction(rank, action, r, channels));
    if (mode == Mode::train) add_versions(rank, schedule);
  }
  add_rings(program, feed);
  return program;
}

Program compile(const Schedule& schedule, const Profile& profile, const Plan& plan) {
  return compile(schedule, profile, plan, step_network(profile),
                 learns(schedule) ? Mode::train : Mode::evaluate);
}

}  // namespace antichain
