// Between two steps the ranks agree whether to save or to stop. Each rank adds its status (the signals that
// it received, and the state of its checkpoint) to the sums that rank 0 gathers at every step's end anyway.
// Rank 0's answer costs a broadcast, so it comes about five times a second and not after every step. Each
// answer says after how many steps the next one comes.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "pipeline/train/checkpointer.h"
#include "pipeline/transport/job.h"

namespace antichain {

// A Deadline is the end of the time that a run may take.
struct Deadline {
  std::chrono::steady_clock::time_point at;
  std::string name;  // of the option that set it: "--max-time"
};

struct StopVerdict {
  bool save = false;
  int signal = 0;    // the one that asked for the stop
  std::string stop;  // why: "SIGUSR1", "the end of --max-time"; "": go on
};

class StepBoundary {
 public:
  StepBoundary(Job&, Checkpointer&, std::optional<Deadline>);

  // Between two steps the status goes with the sums, rank 0 takes those of all ranks, and then all pass.
  std::string status();
  void take_status(int rank, const std::string& status);
  // Collective, at every step's end. All ranks get the same verdict.
  StopVerdict pass_step();
  // Collective, between two batches of an evaluation, where nothing else is gathered. It decides more rarely,
  // because it drains the pipeline.
  StopVerdict pass_batch();

 private:
  using Clock = std::chrono::steady_clock;
  // A Pace says which boundaries of one kind have an answer.
  struct Pace {
    double wanted_s;
    int64_t passed = 0, next = 1, last = 0;
    Clock::time_point last_at = Clock::now();
    double unit_s = 0;  // one step, or one batch
    bool answers() { return ++passed >= next; }
    void plan_next();
  };
  StopVerdict answer(Pace&);
  StopVerdict decide(const Pace&) const;

  Job& job_;
  Checkpointer& checkpointer_;
  const std::optional<Deadline> deadline_;
  Pace steps_{.wanted_s = 0.2}, batches_{.wanted_s = 1};
  int signal_ = 0;  // on rank 0: the first that any rank received
};

}  // namespace antichain
