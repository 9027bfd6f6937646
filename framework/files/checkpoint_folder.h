// A run keeps its checkpoints in one folder, which may contain:
//
//   lock                     held by the run that writes here (framework/files/folder_lock.h)
//   step-000000001200/       a complete checkpoint: stage-0.h5 …, manifest.json
//   best/                    the complete checkpoint of the best evaluation, where it is kept
//   .partial-000000001300/   one being written; renamed into place when it is complete
//   .partial-best-000000001200/  one being written that will be called best
//   .removed-000000000900/   one being removed
//   .token-0123456789abcdef-1    of rank 1, while the ranks find out whether they share the folder
//
// So a name of "step-" and twelve digits is a checkpoint that was complete once, and losing one of the names
// that begin with a dot loses no checkpoint. The folder may be a link, but links within it are never
// followed. Whatever else is there, whatever its name, is left alone (framework/files/checkpoint_remains.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/files/checkpoint.h"

namespace antichain {

// Checkpoints of steps are kept for the newest few steps only. The checkpoint of the best evaluation is kept
// until a better one replaces it.
enum class CheckpointKind { of_step, best };

class CheckpointFolder {
 public:
  static constexpr std::string_view token_prefix = ".token-";  // then 16 hexadecimal digits, "-", the rank

  // `patience_s` is how long to wait for a file that another rank wrote, because file servers show it late.
  explicit CheckpointFolder(std::string path, double patience_s = 10)
      : path_(std::move(path)), patience_s_(patience_s) {}
  const std::string& path() const { return path_; }

  // Returns the folder of every checkpoint that is named after its step, newest first, whatever its state.
  // The list is empty when the folder is missing. Throws Error when it can't be listed.
  std::vector<std::string> list() const;
  std::string of_step(int64_t step) const;                       // path of a complete one
  std::string best() const;                                      // path of the best one, which may be missing
  std::string path_of(int64_t step, CheckpointKind kind) const;  // one of the two
  // Returns the path of one being written.
  std::string partial_of(int64_t step, CheckpointKind kind = CheckpointKind::of_step) const;

  // Removes the remains of attempts that were cut short; returns how many. Warns of those that stay.
  int clean() const;
  // Returns whether a name in the folder is one of those above.
  static bool is_name_of_ours(const std::string& name);
  // Makes the folder for a new checkpoint. Any rank may call it. Throws Error with the system's reason.
  void begin(int64_t step, CheckpointKind kind = CheckpointKind::of_step) const;
  // Publishes a checkpoint whose files are all written and synced. It reads each file as a restart would,
  // adds the manifest, and renames the folder, which replaces a checkpoint of the same name, or a link.
  // Throws Error naming the file that differs from what was written, or what else has the name, or with the
  // system's reason; other checkpoints are unchanged then.
  void publish(const Manifest&, CheckpointKind kind = CheckpointKind::of_step) const;
  // Removes the partial checkpoint of this step, as far as that is possible.
  void discard(int64_t step, CheckpointKind kind = CheckpointKind::of_step) const;
  // Removes all but the newest `keep` checkpoints up to `step`, and never the best one. Later ones stay: the
  // run wrote them before it went back. So do folders that are no checkpoints, or of another step than their
  // name says.
  void prune(int64_t step, int keep) const;

 private:
  std::string path_;
  double patience_s_;
};

constexpr const char* checkpoint_manifest_name = "manifest.json";

// Returns whether a path is one checkpoint, rather than a folder of them.
bool is_checkpoint(const std::string& path);
// Returns the step that a path's last name gives a complete checkpoint.
std::optional<int64_t> step_in_name(const std::string& checkpoint);

// A SyncedFile is a new file, written piece by piece and hashed on the way; it calls `beat` now and then.
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

// Returns the manifest of a checkpoint. Throws Damaged when it is missing or not as it was written. The
// checkpoint's other files are not read.
std::string read_manifest(const std::string& checkpoint);
// Returns the bytes of one of the checkpoint's files. Throws Damaged when they are not those that were
// written.
std::string read_checkpoint_file(const std::string& checkpoint, const CheckpointFile&);
// Reads a whole file, piece by piece. Throws Damaged as above.
void check_checkpoint_file(const std::string& checkpoint, const CheckpointFile&);
Manifest verify_checkpoint(const std::string& checkpoint);

// Returns the newest checkpoint of a folder that is whole, after a warning for each newer one that is not.
// Returns "" where the folder has none at all; throws Error where none of them is whole.
std::string newest_whole_checkpoint(const std::string& folder);

}  // namespace antichain
