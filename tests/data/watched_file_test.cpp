// Tests that training reads only what was there when it began: every change of the bytes is seen, and nothing
// else ends a run.
#include "data/watched_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/xattr.h>

#include <chrono>
#include <functional>
#include <thread>

#include "tests/data/temporary_folder.h"
#include "tests/expect_error.h"

namespace antichain {
namespace {

namespace fs = std::filesystem;

class Watched : public ::testing::Test {
 protected:
  // Opened after a moment, so that what comes later has another time than the file's making (the kernel's
  // clock of files advances every 1 to 10 ms).
  void SetUp() override {
    write_bytes(path_, std::vector<uint8_t>(100, 7));
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
  std::vector<uint8_t> read(const WatchedFile& file) const {
    std::vector<uint8_t> bytes(100);
    file.read(0, bytes, 0);
    return bytes;
  }

  TemporaryFolder folder_;
  const fs::path path_ = folder_.path() / "data.bin", other_ = folder_.path() / "other.bin";
};

TEST_F(Watched, OverwrittenWithItsTimePutBack) {
  const WatchedFile file(path_.string());
  EXPECT_EQ(read(file)[50], 7);
  struct stat before {};
  ASSERT_EQ(::stat(path_.c_str(), &before), 0);
  std::fstream(path_, std::ios::binary | std::ios::in | std::ios::out).seekp(50).put('x');
  const timespec times[2] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, path_.c_str(), times, 0), 0);
  expect_error([&] { read(file); }, {path_.string(), "has been changed while it was trained on"});
}

TEST_F(Watched, WhatLeavesTheBytesAloneIsNoChange) {
  const std::vector<std::function<void()>> harmless = {
      [&] { ::chmod(path_.c_str(), 0600); },
      [&] { ::chmod(path_.c_str(), 0644); },
      [&] { ::setxattr(path_.c_str(), "user.note", "x", 1, 0); },
      [&] { ::utimensat(AT_FDCWD, path_.c_str(), nullptr, 0); },
      [&] { write_bytes(path_, std::vector<uint8_t>(100, 7)); },
      [&] { fs::create_hard_link(path_, other_); },
      [&] { fs::rename(path_, other_); },
      [&] { fs::remove(path_); },
      [&] { write_bytes(other_, std::vector<uint8_t>(100, 8)), fs::rename(other_, path_); }};
  for (const auto& act : harmless) {
    fs::remove(path_), fs::remove(other_);
    SetUp();
    const WatchedFile file(path_.string());
    act();
    EXPECT_EQ(read(file)[50], 7);
    EXPECT_EQ(read(file)[50], 7) << "and again";
  }
}

TEST_F(Watched, AHarmlessChangeDoesNotHideALaterOne) {
  const WatchedFile file(path_.string());
  ::chmod(path_.c_str(), 0600);
  EXPECT_EQ(read(file)[50], 7);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  write_bytes(path_, std::vector<uint8_t>(100, 8));
  expect_error([&] { read(file); }, {path_.string(), "has been changed while it was trained on"});
}

// Of a large file only a part is hashed, so a later time of writing counts as a change.
TEST_F(Watched, ALargeFileIsHashedInPart) {
  fs::resize_file(path_, (uintmax_t(1) << 30) + 12345);  // it takes no room on the disk
  const WatchedFile file(path_.string());
  ::chmod(path_.c_str(), 0600);
  EXPECT_EQ(read(file)[50], 7);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  ::utimensat(AT_FDCWD, path_.c_str(), nullptr, 0);
  expect_error([&] { read(file); }, {"has been changed"});
}

}  // namespace
}  // namespace antichain
