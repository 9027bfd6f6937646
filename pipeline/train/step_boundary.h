// Between two steps the ranks agree whether to save, to go over to another plan, or to stop. Each rank adds
// its status (the signals that it received, and the state of its checkpoint) to the results that it tells
// rank 0 at every step's end anyway. Rank 0's answer comes about five times a second and not after every
// step. Each answer says after how many steps the next one comes.
//
// Where steps overlap, no rank is to wait for rank 0 to end the step. So an answer that rank 0 gives after a
// step holds `lag` steps later, when it has reached all ranks.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "pipeline/train/checkpointer.h"
#include "pipeline/transport/job.h"

namespace antichain {

// A Deadline is the end of the time that a run may take.
struct Deadline {
  std::chrono::steady_clock::time_point at;
  std::string name;  // of the option that set it: "--max-time"
};

struct StopVerdict {
  bool save = false, move = false;
  int signal = 0;    // the one that asked for the stop
  std::string stop;  // why: "SIGUSR1", "the end of --max-time"; "": go on
};

class StepBoundary {
 public:
  // `steps` is the number of steps of this run, of which up to so many `in_a_row` begin and end together. An
  // answer that might come after the last is not given.
  StepBoundary(Job&, Checkpointer&, std::optional<Deadline>, int lag, int64_t steps, int in_a_row);

  // On rank 0 each answer about steps asks whether the ranks are to go over to another plan. An answer comes
  // every second step at least, so that no move waits for long.
  void ask_for_moves(std::function<bool()> wanted) {
    wants_move_ = std::move(wanted);
    steps_.most = 2;
  }

  // Between two steps the status goes with the results, rank 0 takes those of all ranks, and then all pass.
  std::string status();
  void take_status(int rank, const std::string& status);
  // Every rank calls this at every step's end, and once where so many steps end together. All get the same
  // verdict after the same step.
  StopVerdict pass_step(int together = 1);
  // Collective, between two batches of an evaluation, where nothing else is gathered. It decides more rarely,
  // because it drains the pipeline.
  StopVerdict pass_batch();
  // Every rank calls this where the run ends before its last step. An answer that would have held later is
  // received and ignored.
  void end_early();

 private:
  using Clock = std::chrono::steady_clock;
  // A Rhythm says which boundaries of one kind have an answer.
  struct Rhythm {
    double wanted_s;
    int lag = 0;
    int64_t most = 1000;  // from one answer to the next
    int64_t passed = 0, next = 1, last = 0;
    Clock::time_point last_at = Clock::now();
    double unit_s = 0;  // one step, those that end together, or one batch
    void plan_next();
  };
  std::string answer(Rhythm&) const;  // of rank 0
  static StopVerdict read(const std::string& answer, Rhythm&);
  StopVerdict decide(const Rhythm&) const;

  Job& job_;
  Checkpointer& checkpointer_;
  const std::optional<Deadline> deadline_;
  const int64_t last_asked_;  // the last step after which rank 0 gives an answer
  int64_t done_ = 0;          // steps
  Rhythm steps_, batches_{.wanted_s = 1};
  std::function<bool()> wants_move_ = [] { return false; };
  std::string own_answer_;   // the last, on rank 0
  int64_t holds_after_ = 0;  // the step at which the last answer holds
  int signal_ = 0;           // on rank 0: the first that any rank received
};

}  // namespace antichain
