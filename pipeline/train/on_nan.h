// What a training run does about a step whose numbers are not finite.
//
//   abort    the first offence is named and the job ends with ExitCode::not_a_number. Costs nothing between
//            ranks: a rank that finds nothing updates without asking.
//   skip     no rank updates in that step: weights, momentum and buffers stay as they are. All ranks agree
//            before any updates. Too many in a row end the job.
//   rewind   as skip, and everybody goes back to the last checkpoint: its weights, momentum and buffers, and
//            on with the batch after the offending one, so that those in between are not seen again
//            (Chowdhery et al., "PaLM: Scaling Language Modeling with Pathways", JMLR 2023, section 5.1).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/run/offence.h"
#include "pipeline/transport/job.h"

namespace antichain {

enum class OnNan { abort, skip, rewind };
std::vector<std::string> on_nan_names();
OnNan parse_on_nan(const std::string& name);

class NanPolicy {
 public:
  static constexpr int most_in_a_row = 10;

  NanPolicy(OnNan, const Graph&, Job&);

  // Before the update, on every rank: whether to update. With abort it is this rank's own affair; else
  // collective, and Error (ExitCode::not_a_number) on every rank when skipping can't help any more.
  bool may_update(const NumberReport& mine, int64_t step);

  // After the step, where the reports of all ranks are known (rank 0). Error when there is an offence and the
  // run is to end.
  void conclude(const std::vector<NumberReport>& all, int64_t step) const;

  // The sentence of the step that was skipped last, "" when the last one was not: a warning.
  const std::string& skipped_because() const { return reason_; }
  int64_t skipped() const { return skipped_; }

 private:
  [[noreturn]] void end(const Offence&, int64_t step, const std::string& hint) const;

  const OnNan on_nan_;
  const Graph& graph_;
  Job& job_;
  std::string reason_;
  int64_t skipped_ = 0;
  int in_a_row_ = 0;
};

}  // namespace antichain
