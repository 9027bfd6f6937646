#include "framework/growing_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "framework/error.h"
#include "framework/new_file.h"

namespace antichain {
namespace {

// O_NONBLOCK: opening a pipe does not wait for its reader, and is refused.
int open_plain(const std::string& path, bool append) {
  if (!append) NewFile(path).commit();
  FileHandle file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644));
  struct stat status {};
  const bool plain = file >= 0 && ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  if (!plain)
    throw Error(fmt::format("can't write {}: {}", path, file < 0 ? std::strerror(errno) : "it is no file"),
                "check the folder, its permissions and the free space");
  return file.release();
}

}  // namespace

GrowingFile::GrowingFile(const std::string& file, bool append) : file_(open_plain(file, append)) {}

bool GrowingFile::add(std::string_view text) {
  waiting_ += text;
  size_t at = 0;
  for (error_ = 0; at < waiting_.size() && error_ == 0;) {
    const ssize_t n = ::write(file_, waiting_.data() + at, waiting_.size() - at);
    if (n < 0 && errno != EINTR) error_ = errno;
    if (n > 0) at += size_t(n);
  }
  waiting_.erase(0, at);
  return waiting_.empty();
}

std::string GrowingFile::lost() { return add("") ? "" : std::strerror(error_); }

}  // namespace antichain
