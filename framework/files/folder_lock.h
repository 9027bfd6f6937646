// One run writes to a folder at a time: a lock on its file "lock", which says who holds it. The system gives
// the lock back when the process ends, however that happens, so a lock file that is left means nothing.
#pragma once

#include <string>

namespace antichain {

class FolderLock {
 public:
  FolderLock() = default;
  // Makes the folder where needed. Error naming the holder when another process has it, or with the system's
  // reason.
  explicit FolderLock(const std::string& folder);
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) noexcept;
  ~FolderLock();

 private:
  int file_ = -1;
};

}  // namespace antichain
