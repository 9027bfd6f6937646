// Which data a command works on: CIFAR-10, generated images, or an HDF5 file of one's own; and how it becomes
// the data set that all ranks of a job read.
#pragma once

#include <mutex>
#include <string>

#include "app/cli/cli_forward.h"
#include "app/job/job.h"
#include "data/data_set.h"
#include "data/obtain.h"

namespace antichain {

struct DataOptions {
  std::string dataset = "cifar10";  // or synthetic, or hdf5:FILE
  std::string data_dir;
};

void add_data_options(CLI::App&, DataOptions&);
// Usage Error when the options contradict each other.
void check(const DataOptions&);

// Finds (downloads, generates) the data and names the folder or file for read_data(): one process's task.
Obtained obtain_data(const DataOptions&);
// Both splits of a folder in CIFAR-10's layout or of an HDF5 file.
DataSplits read_data(const std::string& path);
// On one rank: both of these, telling the user what there is to tell.
DataSplits read_data(const DataOptions&);

// One data set for all ranks of the process: threads share it.
class SharedData {
 public:
  DataSplits get(const std::string& path) {
    const std::lock_guard lock(mutex_);
    if (!splits_.train) splits_ = read_data(path);
    return splits_;
  }

 private:
  std::mutex mutex_;
  DataSplits splits_;
};

// Makes the network for the images and classes of the data set, before ranks know each other. Error when they
// were given otherwise, or the images are not square.
void fit_network(NetworkOptions&, const DataOptions&, SharedData&);

// Collective: rank 0 finds the data, and the others read what it names.
DataSplits obtain_data(const DataOptions&, Rank&, SharedData&);
// The same; rank 0 prints what it is. Error when there is not one whole batch to train on.
DataSplits obtain_training_data(const DataOptions&, int batch, Rank&, SharedData&);

}  // namespace antichain
