// A NanPolicy says what a training run does about a step whose numbers are not finite.
//
//   abort    The job ends with ExitCode::not_a_number, and names the first number that is not finite. This
//            costs no messages: a rank that finds nothing updates without asking.
//   skip     No rank updates in that step: weights, slots and buffers stay as they are. All ranks agree
//            before any of them updates. Too many such steps in a row end the job.
//   rewind   As skip, and every rank goes back to the last checkpoint: its weights, slots and buffers.
//            Training goes on with the batch after the bad one, so the batches in between are not seen again
//            (Chowdhery et al., "PaLM: Scaling Language Modeling with Pathways", JMLR 2023, section 5.1).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/run/non_finite.h"
#include "pipeline/transport/job.h"

namespace antichain {

enum class OnNan { abort, skip, rewind };
std::vector<std::string> on_nan_names();
OnNan parse_on_nan(const std::string& name);

class NanPolicy {
 public:
  static constexpr int most_in_a_row = 10;

  // `may_skip` says whether the user could have steps left out instead.
  NanPolicy(OnNan, const Graph&, Job&, bool may_skip = true);
  // Returns what the user can do about numbers that are not finite, after the most likely advice.
  std::string advice(const std::string& first, const std::string& skipping) const {
    return may_skip_ ? first + ", or " + skipping + " with --on-nan skip" : first;
  }

  // Called before the update, on every rank; returns whether to update. With abort each rank decides for
  // itself. Otherwise it is collective, and throws Error (ExitCode::not_a_number) on every rank when skipping
  // can't help any more.
  bool may_update(const NumberReport& mine, int64_t step);

  // Called after the step where the reports of all ranks are known, on rank 0. Throws Error when a number is
  // not finite and the run is to end.
  void conclude(const std::vector<NumberReport>& all, int64_t step) const;

  // Returns the warning about the last step if it was skipped, else "".
  const std::string& skipped_because() const { return reason_; }
  int64_t skipped() const { return skipped_; }

 private:
  [[noreturn]] void end(const NonFinite&, int64_t step, const std::string& hint) const;

  const OnNan on_nan_;
  const Graph& graph_;
  Job& job_;
  const bool may_skip_;
  std::string reason_;
  int64_t skipped_ = 0;
  int in_a_row_ = 0;
};

}  // namespace antichain
