#include "framework/bounded_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "framework/error.h"
#include "framework/file_handle.h"
#include "framework/units.h"

namespace antichain {
namespace {

class Reading {
 public:
  // O_NONBLOCK: opening a pipe does not wait for its writer.
  Reading(const std::string& path, int64_t most_bytes)
      : path_(path),
        most_(most_bytes),
        file_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) {
    if (file_ < 0) fail(errno);
  }

  std::string all(double most_silence_s) {
    const int64_t expected = look();
    std::string bytes;
    try {
      bytes.resize(size_t(expected) + 1);  // one more tells the end
      size_t at = 0;
      while (const size_t n = some(bytes.data() + at, bytes.size() - at, most_silence_s)) {
        at += n;
        if (int64_t(at) > most_) refuse_size(most_, "more than ");
        if (at == bytes.size()) bytes.resize(std::min(2 * at + block, size_t(most_) + 1));
      }
      bytes.resize(at);
    } catch (const std::bad_alloc&) {
      throw Error(fmt::format("there is no memory for the {} of {}",
                              size_text(double(std::max<int64_t>(expected, int64_t(bytes.size())))), path_),
                  "give the process more, or a smaller file", ExitCode::out_of_memory);
    }
    return bytes;
  }

 private:
  static constexpr size_t block = 1 << 16;

  [[noreturn]] void fail(int reason) const {
    const bool lost = reason == EIO || reason == ESTALE;
    throw Error(fmt::format("can't read {}: {}", path_, std::strerror(reason)),
                lost ? "its disk or server fails, and nothing of the file was used" : "check the path");
  }
  [[noreturn]] void refuse_size(int64_t bytes, const char* how) const {
    throw Error(fmt::format("{} has {}{}, but {} are the most for such a file", path_, how,
                            size_text(double(bytes)), size_text(double(most_))),
                "is it the right one?");
  }

  // Returns the size that the system reports; it is 0 for pipes and for files that are made while they are
  // read.
  int64_t look() {
    struct stat status {};
    if (::fstat(file_, &status) != 0) fail(errno);
    if (S_ISDIR(status.st_mode)) throw Error(path_ + " is a folder, not a file", "name the file");
    pipe_ = S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode);
    if (!pipe_ && !S_ISREG(status.st_mode))
      throw Error(path_ + " is a device, not a file", "name a file or a pipe");
    if (status.st_size > most_) refuse_size(status.st_size, "");
    return pipe_ ? 0 : status.st_size;
  }

  // Returns how many bytes came; 0 at the end.
  size_t some(char* to, size_t most, double most_silence_s) {
    for (;;) {
      if (pipe_) wait(most_silence_s);
      const ssize_t n = ::read(file_, to, most);
      if (n >= 0) return size_t(n);
      if (errno != EINTR && errno != EAGAIN) fail(errno);
    }
  }

  void wait(double most_silence_s) const {
    pollfd in{.fd = file_, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&in, 1, int(most_silence_s * 1e3));
    if (ready < 0 && errno != EINTR) fail(errno);
    if (ready == 0)
      throw Error(fmt::format("nothing has come through the pipe {} for {:g} s", path_, most_silence_s),
                  "start what writes into it, or name a file");
  }

  const std::string& path_;
  int64_t most_;
  FileHandle file_;
  bool pipe_ = false;
};

}  // namespace

std::string read_bounded(const std::string& path, int64_t most_bytes, double most_silence_s) {
  return Reading(path, most_bytes).all(most_silence_s);
}

}  // namespace antichain
