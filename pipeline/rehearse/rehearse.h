// A Rehearsal runs a schedule on real ranks, over a real transport and under the watchdog, with every message
// in its place. Only the computing is left out: each node waits for its profiled time instead. So a few cores
// measure what many devices would do, including the runtime's own overhead. Its times are called rehearsed,
// never measured, and every output has to say so.
//
//   forward, backward, …   waits as long as pipeline/simulate/simulate.h says, and checks for messages
//                          between the nodes
//   send                   posts a message of the true size if that is at most `largest_true_bytes` (or
//                          always), else a token; the message says when the simulator's link will have
//                          delivered the true bytes
//   recv                   waits until the message is there, and then until the link has delivered it
//   reduce                 the stage's replicas tell each other when they arrived; all continue when the
//                          all-reduce is over
//   vote                   every rank tells rank 0 when it arrived, and rank 0 tells all
//
// The time of transport and runtime counts. A rank's wait for a core does not
// (pipeline/rehearse/rehearsal_time.h).
//
// Like the runner, a rehearsal executes a program, and posts and awaits messages by StepMessages. It needs a
// profile but no operators. Its loop is not the runner's: that one is about what a profile lacks (kernels,
// samples, checked numbers, a device's stream) and adds up real gradients, so the hooks for both would be
// longer than the switch that they shared.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/rehearse/rehearsal_time.h"
#include "pipeline/run/step_messages.h"
#include "pipeline/simulate/action_seconds.h"
#include "pipeline/simulate/simulate.h"

namespace antichain {

struct RehearseOptions {
  double time_scale = 1;      // everything takes this many times as long; reported times are divided by it
  bool true_payload = false;  // send all bytes, however many
};

class Rehearsal {
 public:
  static constexpr int64_t largest_true_bytes = 64 << 10;

  // Collective. Everything referred to must outlive it. Throws Error when the plan's number of ranks differs
  // from the job's, or when it names a device that the cluster lacks.
  Rehearsal(const Profile&, const Plan&, const Schedule&, const Cluster&, Transport&,
            const RehearseOptions& = {});

  // Collective. Rehearses one step. Rank 0 gets the times of all ranks, the others get their own. As in the
  // Timeline of simulate(), they are seconds from the moment at which all ranks begin.
  Timeline step();
  // Collective. Rehearses so many steps, at least 2, in which no rank waits for others to end the step. The
  // result is that of the last, as simulate() returns it for steps that overlap. Its period is the mean of
  // those after the first half. Its step_s is that of the first step, which began with an empty pipeline.
  Timeline overlapping_steps(int steps);
  // Returns the last step's wall-clock time on rank 0, including delays and not divided by time_scale.
  double wall_s() const { return wall_s_; }

 private:
  using Work = std::pair<int, Verb>;  // of a stage

  const RankProgram& own() const { return program_.ranks[size_t(transport_.rank())]; }
  void lay_out();
  const Tensor& tensor(BufferId buffer, int microbatch) const;
  std::string name(const Message&) const;
  void stamp(const Tensor&, double delivered_s) const;
  double await(Transport::Ticket, const Tensor&);
  double opened(double asked_s, const Tensor&);
  std::vector<double> node_ends(int stage, Verb) const;
  std::string label(const Action&) const;
  void begin();
  std::vector<double> play();
  void execute(size_t index);
  void compute(const Action&);
  void send(size_t index);
  void wait(size_t index);
  void reduce(const Action&);
  void vote();
  // The channels of all-reduces and votes come behind those of messages.
  int reduce_channel() const { return program_.channels; }
  int vote_channel() const { return program_.channels + 1; }
  Timeline collect(const std::vector<double>& times);

  const Profile& profile_;
  const Schedule& schedule_;
  const Cluster& cluster_;
  const Plan& plan_;
  Transport& transport_;
  const RehearseOptions options_;
  const ActionSeconds seconds_;
  const Program program_;
  std::map<BufferId, std::vector<Tensor>> copies_;  // of what is sent or received
  StepMessages messages_;
  RehearsalTime time_;
  std::map<Work, std::vector<double>> node_ends_;  // seconds after the action's beginning
  std::map<int, double> link_free_s_;              // by receiver
  double begin_s_ = 0, wall_s_ = 0;
  Action last_;                               // the rank's last backward so far, or weight half
  double last_begin_s_ = 0, added_up_s_ = 0;  // its start; the end of the last all-reduce
  std::vector<std::string> labels_;
};

// Returns a factor of at least 1 at which the shortest stage takes 10 ms for a micro-batch, unless the
// slowest one would then take more than 100 ms. A rehearsal's overhead is about a percent there.
double comfortable_time_scale(const Profile&, const Plan&, const Cluster&);

}  // namespace antichain
