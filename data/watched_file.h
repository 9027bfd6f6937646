// A file that training reads piece by piece while it goes on: a piece that is not what was there when the
// file was opened is refused, never trained on.
//
// Changed in place (another size or time of change, also where the time was put back): the next read is an
// Error. Replaced by another file of the name: this one is still read to the end, and replaced() tells. Read
// with pread: a file that is cut short is an Error, where a mapped one would kill the process; and what the
// system caches is shared by all processes of a host and given back when memory is short.
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
  // Fills `out` from byte `offset` on. Error naming the file and `record`. Safe from several threads.
  void read(int64_t offset, std::span<uint8_t> out, int64_t record) const;
  // Error naming the file and `record` when it is not the one that was opened.
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
