#include "framework/files/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "framework/error.h"

namespace antichain {
namespace {

// Returns "process 4711 on node3", as the holder wrote it.
std::string holder(int file) {
  char text[300] = "";
  const ssize_t n = ::pread(file, text, sizeof text - 1, 0);
  std::string who(text, n > 0 ? size_t(n) : 0);
  return who.substr(0, who.find('\n'));
}

std::string myself() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  return fmt::format("process {} on {}\n", ::getpid(), host);
}

}  // namespace

FolderLock::FolderLock(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::string path = folder + "/lock";
  file_ = error ? -1 : ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (file_ < 0)
    throw Error(fmt::format("can't write to the folder {}: {}", folder,
                            error ? error.message() : std::strerror(errno)),
                "name a folder for checkpoints that can be written to");
  if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
    const int reason = errno;
    const std::string who = holder(file_);
    ::close(std::exchange(file_, -1));
    if (reason != EWOULDBLOCK)
      throw Error(fmt::format("can't lock {}: {}", path, std::strerror(reason)),
                  "keep checkpoints on a file system that has locks");
    throw Error(fmt::format("the folder {} is in use by another run, {}", folder,
                            who.empty() ? "which has just begun" : who),
                "wait for its end, or name another folder for checkpoints");
  }
  // The name is for a process that is refused; failing to write it does not matter to this one.
  const std::string me = myself();
  if (::ftruncate(file_, 0) == 0 && ::pwrite(file_, me.data(), me.size(), 0) > 0) ::fsync(file_);
}

FolderLock::FolderLock(FolderLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}

FolderLock::~FolderLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace antichain
