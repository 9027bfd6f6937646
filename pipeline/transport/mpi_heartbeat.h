// The watchdogs of MPI ranks learn of each other by heartbeats: each sends its rank's Progress record to all
// others on a separate communicator, so that the others can name a rank that hangs or is stopped.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/host/watchdog.h"
#include "pipeline/transport/mpi_check.h"

namespace antichain {

// All ranks make theirs together. Then the watchdog's thread alone uses it (MPI_THREAD_MULTIPLE).
class MpiHeartbeat : public RankStates {
 public:
  explicit MpiHeartbeat(const Progress& mine);

  void refresh() override;
  int size() const override { return comm_.size(); }
  RankState state(int rank) const override;
  double unheard_s(int rank) const override { return known_[size_t(rank)].unheard_s; }
  std::string host(int rank) const override { return known_[size_t(rank)].host; }
  // Tells the others that this rank leaves. Returns true once all have left and all messages are delivered.
  bool leave() override;

 private:
  using Clock = std::chrono::steady_clock;
  struct Beat {
    RankState state;
    int32_t last = 0;  // 1: no more will come
  };
  struct Known {
    RankState state;
    std::string host;
    pid_t process = 0;  // where its threads can be seen from here, else 0
    Clock::time_point heard;
    double unheard_s = 0;
    std::optional<StarvedThreads> starved;  // once it has been silent for a while
    bool gone = false;
  };
  struct SentBeat {
    MPI_Request request;
    std::shared_ptr<const Beat> beat;
  };

  void meet();
  void look();
  void tell(bool last);
  void take_in();
  void listen(Known&);
  void forget_delivered();

  Communicator comm_;
  Standstill mine_;
  std::vector<Known> known_;
  std::vector<SentBeat> sent_;
  bool said_last_ = false;
  Clock::time_point told_;
};

}  // namespace antichain
