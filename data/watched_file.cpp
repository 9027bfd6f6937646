#include "data/watched_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "framework/error.h"
#include "framework/files/hash_stream.h"

namespace antichain {
namespace {

constexpr int64_t most_compared_bytes = int64_t(1) << 30, compared_block = int64_t(1) << 20;

bool same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

}  // namespace

WatchedFile::WatchedFile(std::string path)
    : path_(std::move(path)), file_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (file_ < 0 || ::fstat(file_, &seen_) != 0 || !S_ISREG(seen_.st_mode))
    throw Error(
        fmt::format("can't read {} ({})", path_, file_ < 0 ? std::strerror(errno) : "it is no plain file"),
        "give the data set's folder or file");
  bytes_ = seen_.st_size;
  hash_ = hash();
}

uint64_t WatchedFile::hash() const {
  const int64_t blocks = (bytes_ + compared_block - 1) / compared_block;
  const int64_t hashed = std::min(blocks, most_compared_bytes / compared_block);
  std::vector<uint8_t> block(size_t(std::min(bytes_, compared_block)));
  HashStream hash;
  for (int64_t i = 0; i < hashed; ++i) {
    const size_t got = read_some(i * blocks / hashed * compared_block, block, 0);
    hash.add({reinterpret_cast<const char*>(block.data()), got});
  }
  return hash.value();
}

// Writing a file sets both of its times, and a program can set only st_mtim back. st_ctim changes with the
// file's name, links, owner and mode, too.
void WatchedFile::check_unchanged(int64_t record) const {
  const std::lock_guard lock(mutex_);
  struct stat now {};
  if (::fstat(file_, &now) == 0 && now.st_size == bytes_) {
    const bool written = !same_time(now.st_mtim, seen_.st_mtim);
    if (!written && same_time(now.st_ctim, seen_.st_ctim)) return;
    if ((!written || bytes_ <= most_compared_bytes) && hash() == hash_) {
      seen_ = now;
      return;
    }
  }
  throw Error(fmt::format("{} has been changed while it was trained on: record {} may not be what it was",
                          path_, record),
              "put the data set back as it was and resume, or start again");
}

void WatchedFile::read(int64_t offset, std::span<uint8_t> out, int64_t record) const {
  check_unchanged(record);
  if (read_some(offset, out, record) < out.size())
    throw Error(fmt::format("can't read record {} of {} (the file ends before it)", record, path_),
                "is the file whole?");
}

size_t WatchedFile::read_some(int64_t offset, std::span<uint8_t> out, int64_t record) const {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = ::pread(file_, out.data() + done, out.size() - done, off_t(offset) + off_t(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      throw Error(fmt::format("can't read record {} of {} ({})", record, path_, std::strerror(errno)),
                  "is the disk in order, and the file whole?");
    if (got == 0) break;
    done += size_t(got);
  }
  return done;
}

bool WatchedFile::replaced() const {
  const std::lock_guard lock(mutex_);
  struct stat now {};
  return ::stat(path_.c_str(), &now) != 0 || now.st_dev != seen_.st_dev || now.st_ino != seen_.st_ino;
}

}  // namespace antichain
