#include "pipeline/schedule/placement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "framework/error.h"

namespace antichain {
namespace {

constexpr int stages_of_a_vee = 2;

[[noreturn]] void refuse(const std::string& sentence, const std::string& hint) {
  throw Error(sentence, hint, ExitCode::usage);
}

// Returns the stages of the rank that has this one as its first, of `count` in all.
std::vector<int> stages_from(Placement placement, int first, int ranks, int count) {
  if (placement == Placement::vee) return {first, count - 1 - first};
  std::vector<int> stages;
  for (int s = first; s < count; s += ranks) stages.push_back(s);
  return stages;
}

}  // namespace

int position_of_stage(Placement placement, int stage, int ranks) {
  const int position = stage % ranks;
  return placement == Placement::vee && stage >= ranks ? ranks - 1 - position : position;
}

std::string_view stages_a_rank(Placement placement) {
  switch (placement) {
    case Placement::one_stage:
      return "1";
    case Placement::any:
      return "any number";
    case Placement::loop:
      return "2 or more";
    case Placement::vee:
      return "2";
  }
  return "";
}

int default_chunks(Placement placement) {
  return placement == Placement::loop || placement == Placement::vee ? 2 : 1;
}

void check_chunks(Placement placement, int chunks, std::string_view policy) {
  if (placement == Placement::vee && chunks != stages_of_a_vee)
    refuse(fmt::format("the schedule {} has 2 stages a rank, but {} were asked for", policy, chunks),
           "give --chunks 2, or leave it out");
  if (placement == Placement::loop && chunks < 2)
    refuse(fmt::format("the schedule {} has 2 stages a rank or more, but {} was asked for", policy, chunks),
           "give --chunks 2 or more, or leave it out");
  if (default_chunks(placement) == 1 && chunks != 1)
    refuse(fmt::format("the schedule {} is planned with one stage a rank, but --chunks {} was asked for",
                       policy, chunks),
           "leave out --chunks, or give a schedule with several stages a rank (antichain info lists them)");
}

void check_placement(Placement placement, const std::vector<std::vector<int>>& stages,
                     std::string_view policy) {
  if (placement == Placement::any) return;
  const int ranks = int(stages.size());
  int count = 0;
  for (const std::vector<int>& of_rank : stages) count += int(of_rank.size());
  for (int r = 0; r < ranks; ++r) {
    const std::vector<int>& own = stages[size_t(r)];
    if (placement == Placement::one_stage) {
      if (own.size() == 1) continue;
      refuse(fmt::format("{} is an order for one stage a rank, but the plan gives rank {} {} stages", policy,
                         r, own.size()),
             "choose another schedule, or plan with one stage a rank");
    }
    const bool fits = own.size() >= 2 && own.front() < ranks && count == int(own.size()) * ranks &&
                      own == stages_from(placement, own.front(), ranks, count);
    if (!fits)
      refuse(fmt::format("{} is an order for {}, but the plan gives rank {} of {} the stage{} {}", policy,
                         placement == Placement::vee ? "two stages a rank, s and the s-th from the end"
                                                     : "two or more stages a rank, each so many after the "
                                                       "one before as there are ranks",
                         r, ranks, own.size() == 1 ? "" : "s", fmt::join(own, " and ")),
             fmt::format("plan with --schedule {}, or choose another schedule", policy));
  }
}

}  // namespace antichain
