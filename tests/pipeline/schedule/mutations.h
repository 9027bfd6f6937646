// Every test of the validator by mutation changes a good schedule a little, and sees it refused.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "pipeline/schedule/schedule.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/schedule/data_flow.h"

namespace antichain::test {

// This is a schedule that validate() accepts, and what it is of.
struct GoodSchedule {
  const Profile& profile;
  const Plan& plan;
  const Schedule& schedule;
};

// Replaces `from` by `to` in the text, once, behind `after`; the error has the words.
inline void expect_refused(const GoodSchedule& good, const std::string& after, const std::string& from,
                           const std::string& to, std::initializer_list<std::string> words) {
  std::string text = print(good.schedule);
  const size_t at = text.find(from, text.find(after));
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  SCOPED_TRACE(from + " → " + to);
  expect_error([&] { validate(parse_schedule(text, "text"), good.profile, good.plan); }, words);
}

struct Swaps {
  int refused = 0, harmless = 0;
};

// Dropping or doubling any one action is refused. Swapping two neighbours is refused, or the result is again
// good: then the independent interpreter agrees.
inline void mutate_every_action(const GoodSchedule& good, Swaps& swaps) {
  const Profile& profile = good.profile;
  const Plan& plan = good.plan;
  const Schedule& schedule = good.schedule;
  for (size_t r = 0; r < schedule.ranks.size(); ++r)
    for (size_t i = 0; i < schedule.ranks[r].size(); ++i) {
      Schedule dropped = schedule, doubled = schedule, swapped = schedule;
      dropped.ranks[r].erase(dropped.ranks[r].begin() + i);
      doubled.ranks[r].insert(doubled.ranks[r].begin() + i, schedule.ranks[r][i]);
      const std::string word = print(schedule.ranks[r][i]);
      expect_error([&] { validate(dropped, profile, plan); }, {word, "missing"});
      expect_error([&] { validate(doubled, profile, plan); }, {word, "twice"});
      if (i + 1 == schedule.ranks[r].size()) continue;
      std::swap(swapped.ranks[r][i], swapped.ranks[r][i + 1]);
      try {
        validate(swapped, profile, plan);
        follow_data(swapped, profile, plan, true);
        ++swaps.harmless;
      } catch (const Error&) {
        ++swaps.refused;
      }
    }
}

}  // namespace antichain::test
