// A Checkpointer decides when and how a run saves itself. At a step's end every rank copies its stage's state
// (together a consistent cut) and a thread of its own writes it, while training goes on. Where memory is
// short, training waits instead and nothing is copied. Each rank tells rank 0, with the sums of a later step,
// that its file is safe. When all are, rank 0 adds the manifest and renames the whole into place. If
// something goes wrong on the way, a warning says so: the former checkpoint stays, and training goes on.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "framework/files/checkpoint_folder.h"
#include "pipeline/host/background.h"
#include "pipeline/schedule/schedule_passes.h"
#include "pipeline/stage/stage_state.h"
#include "pipeline/transport/transport.h"

namespace antichain {

struct CheckpointOptions {
  std::string folder;            // "": none are written
  int64_t every_steps = 0;       // 0: not by number
  double every_s = 0;            // 0: not by time
  int keep = 2;                  // newest ones
  Facts model, recipe, setting;  // for the manifest; rank 0's count
  std::string resumed;           // the checkpoint that training goes on from, or ""
};

// A CheckpointReport says what became of a checkpoint.
struct CheckpointReport {
  int64_t step = 0, bytes = 0;
  std::string path;
  double seconds = 0, held_up_s = 0;  // from its start to its end; that training waited
  std::string failure;                // "" when it is complete
  std::string warning;                // complete, but an older one could not be removed, or the disk is slow
};

class Checkpointer {
 public:
  using Listener = std::function<void(const CheckpointReport&)>;  // on rank 0

  // Everything referred to must outlive it. `start` is that of the checkpoint resumed from. `seat` is this
  // rank's. Of a stage's replicas the first one writes. It has what all hold, and gets their parts of slots
  // that they have shared out, over the transport.
  Checkpointer(const CheckpointOptions&, const TrainPosition& start, RankModel&, const Seat& seat, Transport&,
               Listener);

  bool on() const { return !folder_.path().empty(); }
  bool due_at(int64_t step) const;  // by number: the same on every rank
  bool due_now() const;             // by time: for rank 0 to say
  double cost_s() const;            // what saving takes: measured, or a guess before the first one
  // Says whether a checkpoint that is named after this step is complete or under way.
  bool has(int64_t step) const;

  // The model has other nodes from now on. No checkpoint is under way. On rank 0 manifests say this of the
  // run, unless it is empty.
  void divided_anew(const Facts& setting);

  // Collective. It begins one, after the one under way has ended.
  void begin(const TrainPosition&, CheckpointKind kind = CheckpointKind::of_step);
  // At each step's end a rank tells rank 0 its status, which is mostly empty, and rank 0 takes that of all.
  std::string status();
  void take_status(int rank, const std::string& status);
  void tend();
  // Collective. It waits for the one under way and returns why it failed, or "". The answer is the same on
  // every rank.
  std::string finish();
  // Collective. It goes back to the newest complete checkpoint of this run: it sets the stage's state and
  // returns where training goes on from, or nothing when there is none.
  std::optional<TrainPosition> rewind();
  // Returns the newest checkpoint that is named after its step and was complete at the last finish(), or "".
  const std::string& newest() const { return newest_; }

 private:
  using Clock = std::chrono::steady_clock;
  bool memory_allows_copy() const;
  std::string write(const std::string& name, const std::function<void()>& beat) const;
  void conclude(const std::string& failure, std::string warning);

  const CheckpointOptions& options_;
  const Seat seat_;
  const CheckpointFolder folder_;
  RankModel& model_;
  Transport& transport_;
  Job& job_;
  const Listener listener_;
  StateBytes state_bytes_;
  Facts setting_;

  std::string newest_;  // path
  TrainPosition newest_position_;

  // These belong to the one under way.
  bool begun_ = false;
  TrainPosition position_;
  CheckpointKind kind_ = CheckpointKind::of_step;
  StateCopy copy_;
  bool copied_ = false;
  Background writer_;
  std::optional<Background::Outcome> written_;
  bool told_ = false;
  Clock::time_point begin_;
  Clock::time_point due_from_;  // the start of the last one that is called by its step
  double held_up_s_ = 0;

  // These are rank 0's.
  std::map<int, Background::Outcome> parts_;
  Background publisher_;
  std::optional<std::string> verdict_;  // of the one under way: why it failed, or ""
  int64_t bytes_ = 0;
  double last_s_ = 0;
};

// Returns the host memory that checkpoints take besides training, at most: a copy of the state, and its
// largest tensor once more in plain layout.
int64_t checkpoint_memory_bytes(const StateBytes&);

}  // namespace antichain
