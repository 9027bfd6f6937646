// A rehearsal runs a schedule on real ranks, over a real transport, under the watchdog, with every message in
// its place; only the computing is left out: each node takes its profiled time by waiting. So a few cores
// measure what many devices would do, the runtime's own overhead included. Its times are rehearsed, never
// measured, and every output has to say so.
//
//   forward, backward, …   waits as long as pipeline/simulate/simulate.h says, and looks after messages
//                          between the nodes
//   send                   a message of the true size where that is at most `largest_true_bytes` (or always),
//                          else a token; it carries when the link, which is the simulator's, will have
//                          delivered the true bytes
//   recv                   until the message is there, and then until the link has delivered it
//   reduce                 the stage's replicas tell each other when they came; all go on when the all-reduce
//                          is over
//
// What transport and runtime take is counted; that a rank gets its core late is not
// (pipeline/rehearse/rehearsal_time.h).
//
// Like the runner it posts receives as far ahead as the schedule's slots allow, and obeys the actions in
// their order. A profile is enough: there need not be any operators.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/rehearse/rehearsal_time.h"
#include "pipeline/schedule/channels.h"
#include "pipeline/simulate/action_seconds.h"
#include "pipeline/simulate/simulate.h"

namespace antichain {

struct RehearseOptions {
  double time_scale = 1;      // everything takes so many times as long; reported times are divided by it
  bool true_payload = false;  // send the bytes themselves, however many
};

class Rehearsal {
 public:
  static constexpr int64_t largest_true_bytes = 64 << 10;

  // Collective. Everything referred to must outlive it. Error when the plan has another number of ranks than
  // the job, or names a device that the cluster lacks.
  Rehearsal(const Profile&, const Plan&, const Schedule&, const Cluster&, Transport&,
            const RehearseOptions& = {});

  // Collective. One step; on rank 0 the times of all ranks, elsewhere those of this one. Like Timeline of
  // simulate(): seconds from the moment at which all ranks begin.
  Timeline step();
  // Of the last step by the clock on the wall, on rank 0: what was overslept included, stretched as it was.
  double wall_s() const { return wall_s_; }

 private:
  struct Buffers {  // of one message and peer: micro-batch n of this rank in buffer n mod size
    int channel = 0;
    std::vector<Tensor> ring;
    const Tensor& at(int n) const { return ring[size_t(n) % ring.size()]; }
  };
  struct Receive : Buffers {
    Message message;
    int peer = 0;
    std::vector<int> microbatches;  // in the schedule's order
    size_t posted = 0, awaited = 0;
    std::vector<Transport::Ticket> tickets;
  };
  using Route = std::pair<Message, int>;  // and the peer

  void lay_out(const Slots&);
  double await(Transport::Ticket, const Tensor&);
  std::vector<double> node_ends(Verb) const;
  void label(const Action&);
  void begin_step();
  void execute(size_t index);
  void compute(const Action&);
  void send(const Action&);
  void wait(const Action&);
  void reduce(const Action&);
  void post_receives();
  void release(const Action&);
  int turn(int microbatch) const;  // of this rank's micro-batches, which
  Timeline collect(const std::vector<double>& times);

  const Profile& network_;
  const Schedule& schedule_;
  const Cluster& cluster_;
  const Plan& plan_;
  Transport& transport_;
  const RehearseOptions options_;
  const PlanStage& stage_;
  const std::vector<Action>& actions_;  // this rank's
  const std::vector<ActionSeconds> seconds_;
  const Channels channels_;
  RehearsalTime time_;
  std::map<Verb, std::vector<double>> node_ends_;  // seconds after the action's begin
  std::map<Route, Buffers> sends_;
  std::map<Route, Receive> receives_;
  std::map<int, double> link_free_s_;  // by receiver
  std::map<Flow, int> released_;       // turns whose received tensors are used up
  int reduce_channel_ = 0;
  double begin_s_ = 0, wall_s_ = 0;
  std::vector<std::string> labels_;
  std::shared_ptr<std::map<int, std::string>> names_;  // of the channels
};

// A factor, at least 1, that makes the shortest stage's time for a micro-batch 10 ms, but does not stretch
// the slowest one beyond 100 ms: where a rehearsal's overhead is about a percent.
double comfortable_time_scale(const Profile&, const Plan&, const Cluster&);

}  // namespace antichain
