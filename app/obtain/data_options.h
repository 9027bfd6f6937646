// These options say which data a command works on: a published set, generated images, or the user's HDF5
// file of images, arrays or text. This file turns them into the data set that all ranks of a job read.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "app/cli/cli_forward.h"
#include "app/job/job.h"
#include "data/array_set.h"
#include "data/data_set.h"
#include "data/obtain.h"
#include "data/token_set.h"

namespace antichain {

struct DataOptions {
  std::string dataset = "cifar10";  // or another of published_sets(), "synthetic", or "hdf5:FILE"
  std::string data_dir;
  int64_t channels = 3;  // that the network takes: grey images become three equal ones, or stay one
  std::vector<std::string> inputs, targets;  // arrays of an HDF5 file that the network's inputs read
  std::vector<AssignedArray> arrays;         // the same by the network's inputs, once it is known
  bool pack = false, pad = false;            // how text is cut into rows
  int64_t sequence = 0;                      // tokens of a row: the network's, once it is known
  bool masked = false;  // tokens are hidden: the network sees later ones, once it is known

  bool names_arrays() const { return !inputs.empty() || !targets.empty(); }
  Rows rows() const { return pack ? Rows::packed : pad ? Rows::padded : Rows::stream; }
};

void add_data_options(CLI::App&, DataOptions&);
void add_array_options(CLI::App&, DataOptions&);  // --inputs and --targets
void add_text_options(CLI::App&, DataOptions&);   // --pack and --pad
bool is_text(const DataOptions&);                 // false, too, where the file is not here
// Throws a usage Error when the options contradict each other.
void check(const DataOptions&);

// Finds (downloads, generates) the data and names the folder or file for read_data(). One process calls it.
Obtained obtain_data(const DataOptions&);
// Reads both splits of a folder of a published set. Throws a usage Error where an output of the command is
// one of the files, as those below do.
ImageSplits read_binary_files(const PublishedSet&, const std::string& folder);
// Reads both splits of a folder in a published set's layout or of an HDF5 file. The first takes whatever set
// the folder has; the second throws Error where that is not the one that the options name.
ImageSplits read_data(const std::string& path);
DataSplits read_data(const std::string& path, const DataOptions&);
// Find and read images, or text in rows of `sequence` tokens, on one rank, and print notes for the user.
ImageSplits read_images(const DataOptions&);
TokenSplits read_text(const DataOptions&);

// A SharedData is one data set for all ranks of the process: threads share it.
class SharedData {
 public:
  DataSplits get(const std::string& path, const DataOptions& options) {
    const std::lock_guard lock(mutex_);
    if (!splits_.train) splits_ = read_data(path, options);
    return splits_;
  }

 private:
  std::mutex mutex_;
  DataSplits splits_;
};

// Returns "48 images", "48 samples" or "48 rows of 64 tokens", or with "test " in `which` "48 test images" ….
std::string counted_samples(const DataSet&, const std::string& which = "");

// Returns the side of a data set's images. Throws Error when they are not square.
int square_side(const std::string& name, int64_t height, int64_t width);

// Says whether a network takes its number of classes from the data. The ten of CIFAR-10 and of generated
// images are the form's usual ones, or those of a network for more classes.
bool brings_classes(const DataOptions&);

// Sets the network's image size and classes from the data set, before the job starts. Throws Error when the
// user gave others, or the images are not square. Where the options name arrays, it assigns them to the
// network's inputs instead, in their order, and throws a usage Error where there are not as many.
void fit_network(NetworkOptions&, DataOptions&, SharedData&);
// Cuts text into rows as long as the network's. Throws a usage Error where the data set is text and the
// network reads no tokens, or the other way about. Does nothing where the file is not here.
void fit_rows(NetworkOptions&, DataOptions&);

// Collective: rank 0 finds the data, and the others read the file or folder that it names.
DataSplits obtain_data(const DataOptions&, Rank&, SharedData&);
// Does the same, and rank 0 prints a description. Throws Error when there is not one whole batch to train on.
DataSplits obtain_training_data(const DataOptions&, int batch, Rank&, SharedData&);

}  // namespace antichain
