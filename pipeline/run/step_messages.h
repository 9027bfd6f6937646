// StepMessages sends and receives the messages of one rank's step. It posts receives as far ahead as their
// rings of buffers allow, and names each message for the watchdog.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/graph.h"
#include "pipeline/run/replica_sum.h"
#include "pipeline/schedule/channels.h"
#include "pipeline/stage/stage_memory.h"
#include "pipeline/transport/transport.h"

namespace antichain {

class StepMessages {
 public:
  // Everything referred to must outlive it.
  StepMessages(const Graph&, const Schedule&, const RankMemory&, Transport&);

  // Returns the number of the schedule's channels; those of an all-reduce follow them.
  int channels() const { return channels_.count(); }

  // Call this where the transport keeps messages in one order. `sum` makes this rank's all-reduces, where its
  // stage has replicas. Collective. Throws Error when the ranks find different orders.
  void agree_on_order(const Profile& profile, const Plan&, const ReplicaSum* sum);

  // Names the messages and posts the first receives.
  void begin_step();
  void send(const Action&);
  // Waits until the message has arrived. Messages of one channel are awaited in micro-batch order.
  void wait(const Action&);
  // Call this when one more micro-batch that the stage received of this flow is used up; it may post further
  // receives.
  void release(int stage, Flow);

 private:
  struct Arrival {
    int peer = 0;
    MessageKey key;
    Transport::Ticket ticket = 0;
  };
  struct MessageReceives {  // the receives of one message, in all micro-batches
    Message message;
    int stage = 0;  // that receives it
    const Ring* ring = nullptr;
    size_t posted = 0, awaited = 0, released = 0;
    std::vector<Arrival> arrivals;  // in micro-batch order, each from the replica whose turn it was
  };
  void list(const Graph&);
  MessageReceives& receives_of(const Message&, int stage);
  void post_receives();

  const Schedule& schedule_;
  const std::vector<Action>& actions_;  // of this rank
  const RankMemory& memory_;
  Transport& transport_;
  const Channels channels_;
  std::shared_ptr<const std::map<int, std::string>> names_;  // by channel
  std::vector<MessageReceives> receives_;
  std::vector<Turn> turns_;  // where the transport is ordered
};

}  // namespace antichain
