// The watchdog: a thread per process that ends the job when a rank makes no progress, and names the culprit.
//
// No launcher notices a rank that hangs or is stopped; the others then wait for ever. Each rank keeps a
// Progress record; threads of one process are read directly, MPI ranks send theirs to each other
// (pipeline/transport/mpi_heartbeat.h). A rank that waits is never the culprit while another one computes or
// has fallen silent; nor is a rank that is ready to run while others have its core
// (pipeline/host/standstill.h).
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/host/progress.h"

namespace antichain {

// Where the watchdog learns what every rank does. Called by the watchdog's thread only.
class RankStates {
 public:
  virtual ~RankStates() = default;
  virtual void refresh() = 0;
  virtual int size() const = 0;
  virtual RankState state(int rank) const = 0;
  virtual double unheard_s(int rank) const = 0;  // since anything was last heard from the rank
  virtual std::string host(int rank) const = 0;
  // Asks to end; true once the other ranks know and have ended too.
  virtual bool leave() = 0;
};

// Ranks that are threads of this process.
std::unique_ptr<RankStates> states_of_threads(std::vector<const Progress*>);

struct RankView {
  RankState state;
  double still_s =
      0;  // since its beats last changed; time in which it was ready and had no core does not count
  double unheard_s = 0;  // since it was last heard from
  std::string host;
};

// The decision, as a pure function of what is known.
struct Verdict {
  bool stuck = false;
  int speaker = 0;  // the rank that reports: the lowest that is still heard
  std::string message;
};
Verdict judge(const std::vector<RankView>&);

class Watchdog {
 public:
  // Called with the report on the watchdog's thread; expected to end the process with ExitCode::watchdog.
  // `speaker` says who should print.
  using OnStuck = std::function<void(const Verdict&)>;

  Watchdog(std::unique_ptr<RankStates>, OnStuck);
  ~Watchdog();  // returns once every rank has come to its own destructor; watches meanwhile
  Watchdog(const Watchdog&) = delete;

 private:
  void run();
  void watch();
  std::vector<RankView> look();
  double pause_s(const std::vector<RankView>&) const;  // under the lock

  std::unique_ptr<RankStates> states_;
  OnStuck on_stuck_;
  std::vector<uint64_t> beats_;
  std::vector<double> changed_at_s_;
  double looked_at_s_, pause_s_ = 0.25;
  double watched_s_ = 0, awake_since_s_ = 0;  // on the clock of watching, as changed_at_s_
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;  // last: starts when everything else is there
};

}  // namespace antichain
