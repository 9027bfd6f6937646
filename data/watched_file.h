// A WatchedFile is a file that training reads piece by piece. A piece that differs from what was there when
// the file was opened is refused, never trained on.
//
// The bytes are hashed when the file is opened, and again whenever its times have changed: other bytes make
// the next read an Error, and whatever leaves them alone (another mode, owner, name, link or time) does not.
// A file that was replaced by another of its name is still read to the end, and replaced() reports it. Files
// are read with pread: one that is cut short is an Error, where a mapped one would kill the process. The
// system's cache of the file is shared by all processes of a host and given back when memory is short.
//
// Of a file of more than 1 GiB, 1 GiB is hashed, in evenly spread blocks. So a later time of writing (mtime)
// is an Error for such a file, too.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <mutex>
#include <span>
#include <string>

#include "framework/file_handle.h"

namespace antichain {

class WatchedFile {
 public:
  explicit WatchedFile(std::string path);  // Error with the system's reason when it can't be opened

  const std::string& path() const { return path_; }
  int64_t bytes() const { return bytes_; }  // when opened
  // Fills `out` from byte `offset` on. Throws Error naming the file and `record`. Safe from several threads.
  void read(int64_t offset, std::span<uint8_t> out, int64_t record) const;
  // Throws Error naming the file and `record` when its bytes are not those that were there.
  void check_unchanged(int64_t record) const;
  bool replaced() const;  // another file, or none, has its name now

 private:
  // Returns how many bytes were read: fewer than wanted at the file's end. Throws Error naming the record.
  size_t read_some(int64_t offset, std::span<uint8_t> out, int64_t record) const;
  uint64_t hash() const;

  std::string path_;
  FileHandle file_;
  int64_t bytes_ = 0;
  uint64_t hash_ = 0;
  mutable std::mutex mutex_;
  mutable struct stat seen_ {};  // when the bytes were last known to be the same; guarded by mutex_
};

}  // namespace antichain
