// Tests the place of the user's cache.
#include "framework/cache_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/data/temporary_folder.h"
#include "tests/expect_error.h"
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

// Its place is known to all, so somebody else may have been there first.
TEST(CacheFolder, AmongThoseOfOthersIsTheUsersAlone) {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  const Variable temporary("TMPDIR", folder.str());
  const fs::path path = folder.path() / ("antichain-cache-" + std::to_string(::geteuid()));
  EXPECT_EQ(shared_cache_folder(), path);
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
  EXPECT_EQ(shared_cache_folder(), path) << "it is there already";
  for (const fs::perms others : {fs::perms::others_write, fs::perms::group_write}) {
    fs::permissions(path, fs::perms::owner_all | others);
    expect_error([] { shared_cache_folder(); }, {path.string(), "may be written by other users"});
  }
  if (::geteuid() == 0) {
    fs::permissions(path, fs::perms::owner_all);
    ASSERT_EQ(::chown(path.c_str(), 65534, 0), 0);
    expect_error([] { shared_cache_folder(); }, {path.string(), "belongs to another user (65534)"});
  }
  fs::remove(path);
  fs::create_directory_symlink(folder.path(), path);
  expect_error([] { shared_cache_folder(); }, {path.string(), "is not a folder"});
}

}  // namespace
}  // namespace antichain
