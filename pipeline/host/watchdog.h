// The watchdog is a thread per process that ends the job when a rank makes no progress, and names the
// culprit.
//
// No launcher notices a rank that hangs or is stopped, and the others then wait forever. Each rank keeps a
// Progress record. The watchdog reads those of its process directly, and MPI ranks send theirs to each other
// (pipeline/transport/mpi_heartbeat.h). A rank that waits is never the culprit while another one computes or
// has fallen silent. A rank that is ready to run while others have its core is slow and does not hang
// (pipeline/host/core_time.h).
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/host/core_time.h"
#include "pipeline/host/progress.h"

namespace antichain {

// RankStates tells the watchdog what every rank does. Only the watchdog's thread calls it.
class RankStates {
 public:
  virtual ~RankStates() = default;
  virtual void refresh() = 0;
  virtual int size() const = 0;
  virtual RankState state(int rank) const = 0;
  virtual double unheard_s(int rank) const = 0;  // since the last heartbeat of the rank arrived
  virtual std::string host(int rank) const = 0;
  // Announces that this process wants to end. Returns true once all other ranks know and want to end too.
  virtual bool leave() = 0;
};

// A Standstill watches one rank of this process, and measures for how much of the time since its last beat
// the rank had no core.
class Standstill {
 public:
  explicit Standstill(const Progress& rank) : rank_(&rank) {}
  // Returns the rank's record, starved_s included. Only the watchdog's thread calls this, several times
  // within the rank's limit.
  RankState look(double now_s);

 private:
  const Progress* rank_;
  uint64_t beats_ = 0;
  double since_s_ = 0;
  std::optional<StarvedThreads> starved_;  // set once the rank has stood still for a while
};

// Returns the states of ranks that are threads of this process.
std::unique_ptr<RankStates> states_of_threads(std::vector<const Progress*>);

struct RankView {
  RankState state;
  double still_s = 0;  // since its beats last changed, without the time in which it was ready but had no core
  double unheard_s = 0;  // since its last heartbeat
  std::string host;
};

// A Verdict is the decision, as a pure function of what is known.
struct Verdict {
  bool stuck = false;
  int speaker = 0;  // the rank that reports: the lowest one that still sends heartbeats
  std::string message;
};
Verdict judge(const std::vector<RankView>&);

class Watchdog {
 public:
  // The watchdog's thread calls this with the report. It should end the process with ExitCode::watchdog.
  // `speaker` is the rank that should print.
  using OnStuck = std::function<void(const Verdict&)>;

  Watchdog(std::unique_ptr<RankStates>, OnStuck);
  ~Watchdog();  // waits for the destructors of all ranks, and watches meanwhile
  Watchdog(const Watchdog&) = delete;

 private:
  void run();
  void watch();
  std::vector<RankView> look();
  double pause_s(const std::vector<RankView>&) const;  // the caller holds the lock

  std::unique_ptr<RankStates> states_;
  OnStuck on_stuck_;
  std::vector<uint64_t> beats_;
  std::vector<double> changed_at_s_;
  double looked_at_s_, pause_s_ = 0.25;
  double watched_s_ = 0, awake_since_s_ = 0;  // in watched time, like changed_at_s_
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;  // last member: it starts when all others exist
};

}  // namespace antichain
