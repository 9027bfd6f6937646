#include "framework/files/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <regex>

#include "framework/error.h"
#include "framework/paths.h"

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

// Returns whether the file is empty or holds what myself() writes, so that it may be written to. It may have
// another name that means something else.
bool is_lock(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink > 1) return false;
  const std::string line = holder(file);
  return status.st_size == 0 || (status.st_size == off_t(line.size()) + 1 &&
                                 std::regex_match(line, std::regex("process \\d+ on .*")));
}

// Whoever owns a folder can exchange what is in it. Root may use every folder, as containers do.
void check_owner(const std::string& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) == 0 && ::geteuid() != 0 && status.st_uid != ::geteuid())
    throw Error(fmt::format("the folder {} belongs to another user, of number {}", folder, status.st_uid),
                "name a folder of your own");
}

}  // namespace

bool has_lock(const std::string& folder) {
  const FileHandle file(::open((folder + "/lock").c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  return file >= 0 && is_lock(file) && !holder(file).empty();
}

FolderLock::FolderLock(const std::string& folder) {
  make_folders(folder);
  check_owner(folder);
  const std::string path = folder + "/lock";
  file_ = FileHandle(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644));
  if (file_ < 0)
    throw Error(fmt::format("can't write to the folder {}: {}", folder, std::strerror(errno)),
                "name a folder that can be written to");
  if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
    const int reason = errno;
    const std::string who = holder(file_);
    if (reason != EWOULDBLOCK)
      throw Error(fmt::format("can't lock {}: {}", path, std::strerror(reason)),
                  "name a folder on a file system that has locks");
    throw Error(fmt::format("the folder {} is in use by another run, {}", folder,
                            who.empty() ? "which has just begun" : who),
                "wait for its end, or name another folder");
  }
  if (!is_lock(file_))
    throw Error(fmt::format("{} is no lock of antichain, and would be overwritten", path),
                "name another folder");
  // The name is for a process that is refused; failing to write it does not matter to this one.
  const std::string me = myself();
  if (::ftruncate(file_, 0) == 0 && ::pwrite(file_, me.data(), me.size(), 0) > 0) ::fsync(file_);
}

}  // namespace antichain
