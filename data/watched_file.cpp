#include "data/watched_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "framework/error.h"

namespace antichain {
namespace {

bool same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

}  // namespace

WatchedFile::WatchedFile(std::string path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0 || ::fstat(descriptor_, &opened_) != 0 || !S_ISREG(opened_.st_mode)) {
    const std::string why = descriptor_ < 0 ? std::strerror(errno) : "it is no plain file";
    if (descriptor_ >= 0) ::close(descriptor_);
    throw Error(fmt::format("can't read {} ({})", path_, why), "give the data set's folder or file");
  }
  bytes_ = opened_.st_size;
}

WatchedFile::~WatchedFile() { ::close(descriptor_); }

// Writing a file sets both times, and a program can set only the first one back. The second one also changes
// with a file's name, links, owner and mode, which do no harm and can be seen.
bool WatchedFile::same_contents(const struct stat& now) const {
  if (now.st_size != opened_.st_size || !same_time(now.st_mtim, opened_.st_mtim)) return false;
  if (same_time(now.st_ctim, opened_.st_ctim)) return true;
  return now.st_nlink != opened_.st_nlink || now.st_mode != opened_.st_mode || now.st_uid != opened_.st_uid ||
         now.st_gid != opened_.st_gid || replaced();
}

void WatchedFile::check_unchanged(int64_t record) const {
  struct stat now {};
  if (::fstat(descriptor_, &now) == 0 && same_contents(now)) return;
  throw Error(fmt::format("{} has been changed while it was trained on: record {} may not be what it was",
                          path_, record),
              "put the data set back as it was and resume, or start again");
}

void WatchedFile::read(int64_t offset, std::span<uint8_t> out, int64_t record) const {
  check_unchanged(record);
  for (size_t done = 0; done < out.size();) {
    const ssize_t got =
        ::pread(descriptor_, out.data() + done, out.size() - done, off_t(offset) + off_t(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      throw Error(fmt::format("can't read record {} of {} ({})", record, path_,
                              got < 0 ? std::strerror(errno) : "the file ends before it"),
                  "is the disk in order, and the file whole?");
    }
    done += size_t(got);
  }
}

bool WatchedFile::replaced() const {
  struct stat now {};
  return ::stat(path_.c_str(), &now) != 0 || now.st_dev != opened_.st_dev || now.st_ino != opened_.st_ino;
}

}  // namespace antichain
