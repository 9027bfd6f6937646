// A FileHandle keeps a file open while its scope lasts.
#pragma once

#include <unistd.h>

#include <utility>

namespace antichain {

class FileHandle {
 public:
  explicit FileHandle(int id) : id_(id) {}
  ~FileHandle() {
    if (id_ >= 0) ::close(id_);
  }
  FileHandle(FileHandle&& other) noexcept : id_(other.release()) {}
  FileHandle& operator=(FileHandle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  operator int() const { return id_; }
  int release() { return std::exchange(id_, -1); }

 private:
  int id_;
};

}  // namespace antichain
