// A checkpoint is a folder: one HDF5 file per stage, and manifest.json, which says what run they belong to,
// where it stands, and the hash of every file. What the files hold is independent of the plan: parameters and
// buffers in plain layout by their full names, an optimiser's slots in groups of their names ("momentum")
// under the same names.
// docs/reliability.md has the format; framework/files/checkpoint_folder.h reads and writes the folders.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/error.h"

namespace antichain {

// Damaged reports a checkpoint that is not what was written: cut off, changed or incomplete. An older
// checkpoint may be whole.
class Damaged : public Error {
 public:
  using Error::Error;
};

// A BestEvaluation is the best of a run's evaluations so far: the one of the highest accuracy, and among
// equal accuracies the one of the smallest loss.
struct BestEvaluation {
  int64_t step = 0;  // steps done; 0: there was none
  double loss = 0, accuracy = 0;
  int64_t since = 0;  // evaluations after it, of which none was better
};

struct LastEvaluation {
  int64_t step = 0;  // steps done; 0: there was none
  double loss = 0, accuracy = 0;
};

// A TrainPosition says where a run stands between two steps. Sums are over the samples since the last
// evaluation (of the epoch so far, where one follows each epoch). If an evaluation follows the step, the sums
// are those before it, and neither `best` nor `last` includes it yet.
struct TrainPosition {
  int64_t step = 0;              // steps done
  int64_t epoch = 0, batch = 0;  // of the next step
  int64_t epoch_steps = 0;       // steps since then that counted; others were skipped
  double epoch_loss = 0, epoch_correct = 0, epoch_s = 0;
  double loss = 0;  // mean of the last step
  BestEvaluation best;
  LastEvaluation last;
};

// Facts are names and values, as text. A run resumes only if its facts agree with the checkpoint's, and
// errors name each fact that differs.
using Facts = std::map<std::string, std::string>;

// Returns a sentence for each fact that differs or is missing on one side, such as "batch is 64 in the
// checkpoint, but 128 here".
std::vector<std::string> differences(const Facts& there, const Facts& here);

struct CheckpointTensor {
  std::string path;  // "conv1.weight", "momentum/conv1.weight"
  std::vector<int64_t> shape;
  bool is_float = true;
  bool operator==(const CheckpointTensor&) const = default;
};

struct CheckpointFile {
  std::string name;  // "stage-0.h5"
  int64_t bytes = 0;
  uint64_t hash = 0;  // XXH3, 64 bits, of the whole file
  std::vector<CheckpointTensor> tensors;
};
std::string checkpoint_file_name(int stage);
// Returns whether it is "stage-", up to six digits, and ".h5".
bool is_checkpoint_file_name(std::string_view name);
std::string to_json(const CheckpointFile&);
CheckpointFile checkpoint_file_from_json(const std::string& text, const std::string& origin);

struct Manifest {
  static constexpr int64_t format_version = 1;

  std::string program;  // version that wrote it
  Facts model, recipe;  // what changes numbers
  Facts setting;        // what does not: plan, schedule, ranks, …
  TrainPosition position;
  std::vector<CheckpointFile> files;
};

// The text begins so and ends in the hash of all text before it.
constexpr std::string_view manifest_beginning = "{\n \"format\": \"antichain checkpoint\",";
std::string to_json(const Manifest&);
// Throws Damaged when a single bit differs, or a file's name is not one of ours. Throws Error when the format
// is newer.
Manifest manifest_from_json(const std::string& text, const std::string& origin);

}  // namespace antichain
