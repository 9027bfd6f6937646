// A folder for checkpoints that is another one on another host is refused, by rank.
#include "pipeline/transport/shared_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "pipeline/transport/thread_transport.h"
#include "tests/data/temporary_folder.h"
#include "tests/expect_error.h"

namespace antichain {
namespace {

// Three ranks; where `elsewhere` has one, its path leads to another folder.
void check_on_three_ranks(const std::string& folder, const std::map<int, std::string>& elsewhere) {
  run_ranks(3, [&](JobTransport& transport) {
    const auto other = elsewhere.find(transport.rank());
    check_shared_folder(other == elsewhere.end() ? folder : other->second, transport, 0.1);
  });
}

TEST(SharedFolder, OneForAllRanksIsFineAndStaysEmpty) {
  const TemporaryFolder folder;
  check_on_three_ranks(folder.str(), {});
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(SharedFolder, AnotherOneIsRefusedByRank) {
  const TemporaryFolder here, there;
  expect_error(
      [&] {
        check_on_three_ranks(here.str(), {{2, there.str()}});
      },
      {"rank 2", "does not see what rank 0", "another folder", "all hosts share"});
  EXPECT_TRUE(std::filesystem::is_empty(here.path()));
  EXPECT_TRUE(std::filesystem::is_empty(there.path()));
}

TEST(SharedFolder, AMissingOneIsRefusedByRank) {
  const TemporaryFolder here;
  expect_error(
      [&] {
        check_on_three_ranks(here.str(), {{1, here.str() + "/no"}});
      },
      {"rank 1", "can't write to the folder", "No such file"});
}

}  // namespace
}  // namespace antichain
