// A FolderLock lets one run at a time write to a folder: it locks the folder's file "lock", which names the
// holder. The system releases the lock when the process ends, however that happens, so a lock file that is
// left over means nothing.
#pragma once

#include <string>

#include "framework/file_handle.h"

namespace antichain {

// Returns whether a run has locked the folder, now or once.
bool has_lock(const std::string& folder);

class FolderLock {
 public:
  FolderLock() = default;
  // Makes the folder where needed. Throws Error naming the holder when another process has the lock, when the
  // folder belongs to another user, when its file "lock" is of something else, or with the system's reason.
  explicit FolderLock(const std::string& folder);

 private:
  FileHandle file_{-1};
};

}  // namespace antichain
