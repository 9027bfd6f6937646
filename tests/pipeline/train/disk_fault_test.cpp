// A disk fails at the n-th call, for every n there is. The checkpoint before is whole, nothing half done is
// left, there is a report, and training goes on to the same bits.
//
// The calls that checkpoints make (mkdir, open, write, fsync, close, rename) are taken over by those of this
// executable, which pass them on, count those that touch the folder, and fail when told to.
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <vector>

#include "framework/files/checkpoint_folder.h"
#include "pipeline/schedule/policy.h"
#include "tests/data/temporary_folder.h"
#include "tests/pipeline/run/training_run.h"

namespace {

// Disk is the disk under one folder.
struct Disk {
  std::mutex mutex;
  std::string folder;  // "": nothing is counted
  int error = 0, fails_at = 0, calls = 0;
  bool stays_broken = false;
  std::vector<const antichain::Progress*> stalls_until_told;  // of each rank: a sync waits for one that is
  int told = 0, untold = 0;
  std::map<int, bool> open;  // files of the folder: whether written to, or a folder to be synced
} disk;

// Returns whether this call is one that fails; errno is then set.
bool strikes() {
  ++disk.calls;
  if (disk.fails_at == 0 || disk.calls < disk.fails_at || (disk.calls > disk.fails_at && !disk.stays_broken))
    return false;
  errno = disk.error;
  return true;
}

bool strikes(const char* path) {
  const std::lock_guard lock(disk.mutex);
  return !disk.folder.empty() && std::string_view(path).starts_with(disk.folder) && strikes();
}

bool strikes(int file, bool closing = false) {
  const std::lock_guard lock(disk.mutex);
  const auto it = disk.open.find(file);
  return it != disk.open.end() && (it->second || !closing) && strikes();
}

bool watchdog_was_told() {
  const std::lock_guard lock(disk.mutex);
  return std::ranges::any_of(disk.stalls_until_told, [](auto* rank) { return rank->read().patience_s > 0; });
}

void stall() {
  if (disk.stalls_until_told.empty()) return;
  for (int i = 0; i < 20'000 && !watchdog_was_told(); ++i) ::usleep(1000);
  const bool told = watchdog_was_told();
  const std::lock_guard lock(disk.mutex);
  ++(told ? disk.told : disk.untold);
}

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int mkdir(const char* path, mode_t mode) noexcept {
  return strikes(path) ? -1 : real<int(const char*, mode_t)>("mkdir")(path, mode);
}

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  const bool counts = (flags & O_ACCMODE) != O_RDONLY || (flags & O_DIRECTORY);
  if (counts && strikes(path)) return -1;
  const int file = real<int(const char*, int, ...)>("open")(path, flags, mode);
  const std::lock_guard lock(disk.mutex);
  if (file >= 0 && counts && !disk.folder.empty() && std::string_view(path).starts_with(disk.folder))
    disk.open[file] = (flags & O_ACCMODE) != O_RDONLY;
  return file;
}

// A disk that is full takes a part of what it is given first.
ssize_t write(int file, const void* bytes, size_t count) {
  const auto pass_on = real<ssize_t(int, const void*, size_t)>("write");
  if (!strikes(file)) return pass_on(file, bytes, count);
  if (disk.error == ENOSPC && count > 1) pass_on(file, bytes, count / 2);
  errno = disk.error;
  return -1;
}

int fsync(int file) {
  stall();
  return strikes(file) ? -1 : real<int(int)>("fsync")(file);
}

int close(int file) {
  const bool bad = strikes(file, true);
  {
    const std::lock_guard lock(disk.mutex);
    disk.open.erase(file);
  }
  const int result = real<int(int)>("close")(file);
  if (!bad) return result;
  errno = disk.error;
  return -1;
}

int rename(const char* from, const char* to) noexcept {
  return strikes(to) ? -1 : real<int(const char*, const char*)>("rename")(from, to);
}

}  // extern "C"

namespace antichain {
namespace {

using namespace test;

// Trains five steps with a checkpoint after each.
TrainingRun train(const std::string& folder, int64_t until) {
  TrainingCase c{.microbatch = 1, .microbatches = 2, .steps = 5, .rate = 0.01f, .epochs = 1};
  c.checkpoint = folder;
  c.every_steps = 1;
  c.until = until;
  return train_on_threads(c, 2, by_antichains, by_policy(Policy::one_f_one_b));
}

class DiskFaults : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    temporary_ = new TemporaryFolder;
    const std::string whole = folder("whole");
    undisturbed_ = train(whole, 5);
    train(folder("begin"), 3);
  }
  static void TearDownTestSuite() { delete temporary_; }
  void TearDown() override { repair(); }

  static std::string folder(const std::string& name) {
    const std::string path = temporary_->str() + "/" + name;
    std::filesystem::create_directories(path);
    return path;
  }

  static void repair() {
    const std::lock_guard lock(disk.mutex);
    disk.folder.clear(), disk.open.clear();
    disk.fails_at = 0;
  }
  static void fail_at(int n, int error, bool stays_broken, const std::string& folder) {
    const std::lock_guard lock(disk.mutex);
    disk.folder = folder;
    disk.calls = 0;
    disk.fails_at = n, disk.error = error, disk.stays_broken = stays_broken;
  }

  static TemporaryFolder* temporary_;
  static TrainingRun undisturbed_;
};
TemporaryFolder* DiskFaults::temporary_ = nullptr;
TrainingRun DiskFaults::undisturbed_;

// Calls take the two errors, and a disk that stays broken, in turns.
TEST_F(DiskFaults, AtEveryCallCostNoMoreThanTheCheckpoint) {
  int n = 1;
  for (bool struck = true; struck; ++n) {
    const int error = n % 4 < 2 ? ENOSPC : EIO;
    const bool stays_broken = n % 2 == 1;
    const std::string there = folder("run");
    std::filesystem::remove_all(there);
    std::filesystem::copy(folder("begin"), there, std::filesystem::copy_options::recursive);
    fail_at(n, error, stays_broken, there);
    const TrainingRun run = train(there, 0);
    struck = disk.calls >= n;
    repair();
    const std::string what =
        fmt::format("{} at call {}{}", std::strerror(error), n, stays_broken ? " and ever after" : "");
    EXPECT_EQ(run.state, undisturbed_.state) << what;
    EXPECT_EQ(run.losses, std::vector<double>(undisturbed_.losses.begin() + 3, undisturbed_.losses.end()))
        << what;
    const CheckpointFolder checkpoints(there);
    const auto list = checkpoints.list();
    EXPECT_EQ(std::ranges::count(list, checkpoints.of_step(3)), 1) << what;
    for (const std::string& checkpoint : list) EXPECT_NO_THROW(verify_checkpoint(checkpoint)) << what;
    EXPECT_EQ(checkpoints.clean(), 0) << what << ": something half done is left";
    EXPECT_EQ(run.unsaved.empty(), !run.checkpoints.empty() && run.checkpoints.back().failure.empty())
        << what << ": " << run.unsaved;
    std::string said;
    for (const CheckpointReport& report : run.checkpoints) said += report.failure + report.warning;
    EXPECT_EQ(said.find(std::strerror(error)) != std::string::npos, struck) << what << ": " << said;
  }
  // Two checkpoints of two files, a manifest, two folders and a name each.
  EXPECT_GE(n - 2, 30) << "the calls are not taken over";
  fmt::print("every one of {} calls\n", n - 2);
}

// A file server that stalls: every sync waits until the watchdog has been told that a disk works, as it is
// once a rank has nothing else to do.
TEST(SlowDisk, IsNoHang) {
  const TemporaryFolder folder;
  TrainingCase c{.microbatch = 1, .microbatches = 2, .steps = 1, .rate = 0.01f};
  c.checkpoint = folder.str();
  c.over = [](JobTransport& job, const Context&) {
    const std::lock_guard lock(disk.mutex);
    disk.stalls_until_told.push_back(&job.activity());
    return nullptr;
  };
  const TrainingRun run = train_on_threads(c, 2, by_antichains, by_policy(Policy::one_f_one_b));
  disk.stalls_until_told.clear();
  EXPECT_EQ(disk.untold, 0);
  EXPECT_GE(disk.told, 3) << "two files and a manifest";
  EXPECT_EQ(run.checkpoints.at(0).failure, "");
}

}  // namespace
}  // namespace antichain
