// The slots of a rank that has one stage.
#pragma once

#include <gtest/gtest.h>

#include "pipeline/schedule/schedule.h"

namespace antichain::test {

inline Slots only(const RankSlots& of_rank) {
  EXPECT_EQ(of_rank.size(), 1u);
  return of_rank.begin()->second;
}

}  // namespace antichain::test
