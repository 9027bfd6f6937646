// The messages of one rank's step: receives are posted as far ahead as their rings of buffers allow, and each
// message has a name for the watchdog.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/graph.h"
#include "pipeline/schedule/channels.h"
#include "pipeline/stage/stage_memory.h"
#include "pipeline/transport/transport.h"

namespace antichain {

class StepMessages {
 public:
  // Everything referred to must outlive it.
  StepMessages(const Graph&, const Schedule&, const StageMemory&, Transport&);

  // Channels of the schedule: those of an all-reduce come behind them.
  int channels() const { return channels_.count(); }

  // For a transport that wants messages in one order. `of_sum` are the turns of this rank's all-reduce.
  // Collective. Error when the ranks find different orders.
  void agree_on_order(const Profile& profile, const Plan&, const std::vector<Turn>& of_sum);

  // Names the messages and posts the first receives.
  void begin_step();
  void send(const Action&);
  // Until the message has arrived. Messages of one channel are awaited in micro-batch order.
  void wait(const Action&);
  // One more received micro-batch of this flow is used up, so further receives may be posted.
  void release(Flow);

 private:
  struct Arrival {
    int peer = 0;
    MessageKey key;
    Transport::Ticket ticket = 0;
  };
  struct Receive {  // the receives of one message, in all micro-batches
    Message message;
    const Ring* ring = nullptr;
    size_t posted = 0, awaited = 0, released = 0;
    std::vector<Arrival> arrivals;  // in micro-batch order, each from the replica whose turn it was
  };
  void list(const Graph&);
  Receive& receive(const Message&);
  void post_receives();

  const Schedule& schedule_;
  const std::vector<Action>& actions_;  // of this rank
  const StageMemory& memory_;
  Transport& transport_;
  const Channels channels_;
  std::shared_ptr<const std::map<int, std::string>> names_;  // by channel
  std::vector<Receive> receives_;
  std::vector<Turn> turns_;  // where the transport is ordered
};

}  // namespace antichain
