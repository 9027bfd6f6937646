#include "pipeline/train/on_nan.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/error.h"

namespace antichain {

std::vector<std::string> on_nan_names() { return {"abort", "skip", "rewind"}; }

OnNan parse_on_nan(const std::string& name) {
  const std::vector<std::string> names = on_nan_names();
  const auto it = std::ranges::find(names, name);
  ANTICHAIN_CHECK(it != names.end(), "the command line has checked the name");
  return OnNan(it - names.begin());
}

NanPolicy::NanPolicy(OnNan on_nan, const Graph& graph, Job& job, bool may_skip)
    : on_nan_(on_nan), graph_(graph), job_(job), may_skip_(may_skip) {}

bool NanPolicy::may_update(const NumberReport& mine, int64_t step) {
  reason_.clear();
  if (on_nan_ == OnNan::abort) return !mine.bad;
  job_.activity().doing("agreeing with the other ranks that the step's numbers are finite");
  std::vector<NumberReport> all;
  for (const std::string& text : job_.gather(to_text(mine))) all.push_back(report_from_text(text));
  const auto first = first_non_finite(all);
  const NumberReport verdict =
      report_from_text(job_.broadcast(to_text({.bad = first.has_value(), .first = first})));
  if (!verdict.bad) {
    in_a_row_ = 0;
    return true;
  }
  reason_ = describe(*verdict.first, graph_, step);
  ++skipped_;
  if (on_nan_ == OnNan::skip && verdict.first->what == NonFinite::What::parameter)
    end(*verdict.first, step, "skipping a step does not mend weights: use a smaller --lr");
  if (++in_a_row_ > most_in_a_row)
    end(*verdict.first, step,
        fmt::format("{} steps in a row were skipped: use a smaller --lr", most_in_a_row));
  return false;
}

void NanPolicy::conclude(const std::vector<NumberReport>& all, int64_t step) const {
  if (on_nan_ != OnNan::abort) return;
  if (const auto first = first_non_finite(all))
    end(*first, step, advice("use a smaller --lr or a longer --warmup-steps", "leave such steps out"));
}

void NanPolicy::end(const NonFinite& first, int64_t step, const std::string& hint) const {
  throw Error(describe(first, graph_, step), hint, ExitCode::not_a_number);
}

}  // namespace antichain
