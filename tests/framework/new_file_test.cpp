// Files that replace others: no link is followed, nothing of somebody else's is removed, and a disk that is
// full for a moment loses no line.
#include "framework/new_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "framework/json.h"
#include "framework/paths.h"
#include "tests/data/temporary_folder.h"
#include "tests/expect_error.h"

namespace antichain {
namespace {

namespace fs = std::filesystem;

class NewFiles : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.str() + "/" + name; }
  TemporaryFolder folder_;
};

TEST_F(NewFiles, AreWholeOrNotThereAndFollowNoLink) {
  write_file(path("victim"), "precious");
  fs::create_symlink(path("victim"), path("out"));
  {
    NewFile file(path("out"));
    file.write("half");
    EXPECT_NE(file.path(), NewFile(path("out")).path()) << "nobody can guess it";
    EXPECT_FALSE(fs::is_symlink(file.path()));
  }
  EXPECT_EQ(names_in(folder_.str()), (std::vector<std::string>{"out", "victim"})) << "half a file is removed";
  write_file(path("out"), "whole");
  EXPECT_FALSE(fs::is_symlink(path("out")));
  EXPECT_EQ(read_file(path("victim")), "precious");
  expect_error([&] { write_file(path("nowhere/x"), ""); }, {"can't create", "nowhere/x", "No such file"});
}

TEST_F(NewFiles, OfDeadProcessesAreRemovedAndNoOthers) {
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  ::waitpid(dead, nullptr, 0);
  const auto named = [](const char* target, pid_t process, const char* rest) {
    return fmt::format("{}.{}{}", target, process, rest);
  };
  const std::string abandoned = named("run.json", dead, "-0123456789ab.part");
  const std::vector<std::string> others = {named("mine.json", dead, "-0123456789ab.part"),
                                           named("run.json", ::getpid(), "-0123456789ab.part"),
                                           named("run.json", dead, "-0123456789aB.part"),
                                           named("run.json", dead, "-0123456789ab.part2"),
                                           named("run.json", dead, ".part"),
                                           "run.json",
                                           "run.json.part"};
  for (const std::string& name : others) write_file(path(name), "x");
  write_file(path(abandoned), "x");
  const std::string link = named("run.json", dead, "-0123456789ac.part");
  fs::create_symlink(path("mine"), path(link));
  remove_abandoned(folder_.str(), std::vector{"run.json", "weights.h5"});
  EXPECT_FALSE(exists(path(abandoned)));
  EXPECT_TRUE(is_link(path(link)));
  for (const std::string& name : others) EXPECT_TRUE(exists(path(name))) << name;
}

// The limit on a file's size stands for a disk that is full for a moment.
TEST_F(NewFiles, AGrowingOneKeepsWhatAFullDiskDoesNotTake) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  GrowingFile file(path("log"), false);
  EXPECT_TRUE(file.add("one\n"));
  const rlimit full{.rlim_cur = 6, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  const bool second = file.add("two\n"), third = file.add("three\n");
  const std::string lost = file.lost();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, handler);
  EXPECT_FALSE(second);
  EXPECT_FALSE(third);
  EXPECT_EQ(lost, "File too large");
  EXPECT_TRUE(file.add("four\n"));
  EXPECT_EQ(file.lost(), "");
  EXPECT_EQ(read_file(path("log")), "one\ntwo\nthree\nfour\n");

  EXPECT_TRUE(GrowingFile(path("log"), true).add("five\n"));
  EXPECT_EQ(read_file(path("log")), "one\ntwo\nthree\nfour\nfive\n");
  fs::create_hard_link(path("log"), path("another name"));
  fs::create_symlink(path("another name"), path("link"));
  expect_error([&] { GrowingFile(path("link"), true); }, {"can't write", "link"});
  EXPECT_TRUE(GrowingFile(path("link"), false).add("new\n"));
  EXPECT_TRUE(GrowingFile(path("log"), false).add("new\n"));
  EXPECT_EQ(read_file(path("another name")), "one\ntwo\nthree\nfour\nfive\n");
}

TEST_F(NewFiles, PathsSayWhatCantBeFoundOut) {
  fs::create_symlink("loop", path("loop"));
  expect_error([&] { exists(path("loop")); }, {"can't look at", "loop", "symbolic links"});
  expect_error([&] { names_in(path("none")); }, {"can't list the folder", "none"});
  EXPECT_FALSE(exists(path("none/none")));
  EXPECT_TRUE(is_link(path("loop")));
  write_file(path("a"), "");
  EXPECT_FALSE(exists(path("a/b")));
  fs::create_directory(path("d"));
  fs::create_directory_symlink(path("d"), path("l"));
  fs::create_hard_link(path("a"), path("d/a"));
  EXPECT_TRUE(are_one(path("l/x"), path("d/../d/x"))) << "neither is there";
  EXPECT_TRUE(are_one(path("l/a"), path("a")));
  EXPECT_FALSE(are_one(path("d/x"), path("x")));
  EXPECT_TRUE(is_within(path("l/deep/x"), path("d")));
  EXPECT_FALSE(is_within(path("dd/x"), path("d")));
}

}  // namespace
}  // namespace antichain
