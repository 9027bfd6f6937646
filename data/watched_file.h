// A WatchedFile is a file that training reads piece by piece. A piece that differs from what was there when
// the file was opened is refused, never trained on.
//
// A file that was changed in place (another size or time of change, even where the time was set back) makes
// the next read an Error. A file that was replaced by another of its name is still read to the end, and
// replaced() reports it. Files are read with pread: one that is cut short is an Error, where a mapped one
// would kill the process. The system's cache of the file is shared by all processes of a host and given back
// when memory is short.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <span>
#include <string>

namespace antichain {

class WatchedFile {
 public:
  explicit WatchedFile(std::string path);  // Error with the system's reason when it can't be opened
  ~WatchedFile();
  WatchedFile(const WatchedFile&) = delete;

  const std::string& path() const { return path_; }
  int64_t bytes() const { return bytes_; }  // when opened
  // Fills `out` from byte `offset` on. Throws Error naming the file and `record`. Safe from several threads.
  void read(int64_t offset, std::span<uint8_t> out, int64_t record) const;
  // Throws Error naming the file and `record` when it is not the one that was opened.
  void check_unchanged(int64_t record) const;
  bool replaced() const;  // another file, or none, has its name now

 private:
  bool same_contents(const struct stat& now) const;

  std::string path_;
  int descriptor_ = -1;
  int64_t bytes_ = 0;
  struct stat opened_ {};
};

}  // namespace antichain
