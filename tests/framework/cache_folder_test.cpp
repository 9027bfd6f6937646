// Tests the place of the user's cache.
#include "framework/cache_folder.h"

#include <gtest/gtest.h>

#include "tests/variable.h"

namespace antichain {
namespace {

TEST(CacheFolder, IsTheUsers) {
  const Variable home("HOME", "/nowhere/home");
  const Variable cache("XDG_CACHE_HOME", "/scratch/cache");
  EXPECT_EQ(user_cache_folder(), "/scratch/cache/antichain");
  const Variable empty("XDG_CACHE_HOME", "");
  EXPECT_EQ(user_cache_folder(), "/nowhere/home/.cache/antichain");
  const Variable homeless("HOME", std::nullopt);
  EXPECT_EQ(user_cache_folder(), "");
}

}  // namespace
}  // namespace antichain
