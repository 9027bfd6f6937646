// Channels number the distinct (message, sender, receiver) triples of a schedule, the same on every rank, so
// that a message between two ranks is named by two small integers: channel and micro-batch.
#pragma once

#include <map>
#include <tuple>

#include "pipeline/schedule/schedule.h"

namespace antichain {

class Channels {
 public:
  explicit Channels(const Schedule&);
  int count() const { return int(number_.size()); }
  // Throws std::out_of_range for a message that the schedule does not send.
  int operator()(int sender, int receiver, const Message& message) const {
    return number_.at({sender, receiver, message});
  }

 private:
  std::map<std::tuple<int, int, Message>, int> number_;
};

}  // namespace antichain
