// A plan that does not fit is refused on every rank, before anything is allocated, with a table of all
// stages.
#include "app/job/preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/error.h"
#include "pipeline/host/host_memory.h"
#include "pipeline/transport/thread_transport.h"

namespace antichain {
namespace {

using ::testing::HasSubstr;

// Returns what each rank was refused with, or "".
std::vector<std::string> refusals(const std::vector<MemoryNeed>& needs) {
  std::vector<std::string> all(needs.size());
  run_ranks(int(needs.size()), [&](JobTransport& transport) {
    const auto r = size_t(transport.rank());
    try {
      check_available_memory(transport, MemoryOf::plan, needs[r]);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::out_of_memory);
      all[r] = error.what();
    }
  });
  return all;
}

TEST(CheckMemory, RefusesWithATableOfAllStages) {
  const int64_t available = available_memory_bytes(), mebibyte = 1 << 20;
  const MemoryNeed small{.step = {.weights = 3 * mebibyte, .kept = 5 * mebibyte}};
  MemoryNeed large = small;
  large.step.kept = 2 * available;  // other programs may free memory meanwhile
  EXPECT_THAT(refusals({small, small}), ::testing::Each(""));
  for (const std::string& text : refusals({small, large})) {
    EXPECT_THAT(text, HasSubstr("this plan needs "));
    EXPECT_THAT(text, ::testing::ContainsRegex("rank +host"));
    EXPECT_THAT(text, ::testing::ContainsRegex("\n +0 .* 8\\.00")) << "stage 0 and what it needs";
    EXPECT_THAT(text, ::testing::ContainsRegex("\n +1 "));
  }
}

// The same for all ranks, so far.
TEST(CheckMemory, OfProfilingNamesRanks) {
  run_ranks(2, [&](JobTransport& transport) {
    try {
      check_available_memory(transport, MemoryOf::profiling,
                             {.step = {.weights = 2 * available_memory_bytes()}});
      ADD_FAILURE() << "not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::out_of_memory);
      EXPECT_THAT(error.what(), HasSubstr("measuring this network needs "));
      EXPECT_THAT(error.what(), ::testing::ContainsRegex("rank +host"));
    }
  });
}

// Each fits alone, but they share the host.
TEST(CheckMemory, AddsUpTheRanksOfAHost) {
  const MemoryNeed most{.step = {.weights = available_memory_bytes() * 2 / 3}};
  EXPECT_THAT(refusals({most}), ::testing::Each(""));
  EXPECT_THAT(refusals({most, most}), ::testing::Each(HasSubstr("this plan needs ")));
}

}  // namespace
}  // namespace antichain
