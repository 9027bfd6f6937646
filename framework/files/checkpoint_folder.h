// The folder that a run keeps its checkpoints in, and what may be found there:
//
//   lock                     held by the run that writes here (framework/files/folder_lock.h)
//   step-000000001200/       a complete checkpoint: stage-0.h5 …, manifest.json
//   .partial-000000001300/   one being written; renamed into place when it is complete
//   .removed-000000000900/   one being removed
//   .token-0123456789abcdef-1    of rank 1, while the ranks find out whether they share the folder
//
// So a name that begins with "step-" is a checkpoint that was complete once, and what begins with a dot is
// nobody's loss. Nothing is followed that is a link.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/files/checkpoint.h"

namespace antichain {

class CheckpointFolder {
 public:
  static constexpr std::string_view token_prefix = ".token-";  // of names that clean() removes

  // `patience_s`: for how long a file that another rank wrote is waited for, because file servers tell of it
  // late.
  explicit CheckpointFolder(std::string path, double patience_s = 10)
      : path_(std::move(path)), patience_s_(patience_s) {}
  const std::string& path() const { return path_; }

  // Every checkpoint's folder, newest step first, whatever its state. None when the folder is not there.
  std::vector<std::string> list() const;
  std::string of_step(int64_t step) const;     // path of a complete one
  std::string partial_of(int64_t step) const;  // and of one being written

  // Removes what attempts that were cut short left; returns how many.
  int clean() const;
  // Makes the folder for a new one, by any rank. Error with the system's reason.
  void begin(int64_t step) const;
  // All files are written and safe: reads each as a restart would, adds the manifest, and renames the folder,
  // in whose place a checkpoint of the same step may stand. Error with the file that is not here as it was
  // written, or the system's reason; the others are as they were.
  void publish(const Manifest&) const;
  // Removes the partial one of this step, as far as that is possible.
  void discard(int64_t step) const;
  // Removes all but the newest `keep` of those up to `step`; later ones, of a past that was left, stay.
  void prune(int64_t step, int keep) const;

 private:
  std::string path_;
  double patience_s_;
};

constexpr const char* checkpoint_manifest_name = "manifest.json";

// A path that is one checkpoint, rather than a folder of them.
bool is_checkpoint(const std::string& path);

// A file that is not there yet, written piece by piece and hashed on the way; `beat` is called now and then.
// Errors have the system's reason.
class SyncedFile {
 public:
  SyncedFile(const std::string& path, std::function<void()> beat);
  ~SyncedFile();
  SyncedFile(const SyncedFile&) = delete;
  void write(std::string_view bytes);
  void finish();  // everything is on the disk when it returns
  int64_t bytes() const;
  uint64_t hash() const;  // as hash_bytes() of all of it

 private:
  struct State;
  std::unique_ptr<State> state_;
};
void write_synced(const std::string& path, const std::string& bytes);

// The manifest of a checkpoint. Damaged when it is missing or not as it was written; its files are not read.
std::string read_manifest(const std::string& checkpoint);
// The bytes of one of its files. Damaged when they are not those that were written.
std::string read_checkpoint_file(const std::string& checkpoint, const CheckpointFile&);
// Reads all of it, piece by piece. Damaged as above.
void check_checkpoint_file(const std::string& checkpoint, const CheckpointFile&);
Manifest verify_checkpoint(const std::string& checkpoint);

// The newest one of a folder that is whole, after a warning for each newer one that is not. "" where the
// folder has none at all, Error where none of them is whole.
std::string newest_whole_checkpoint(const std::string& folder);

}  // namespace antichain
