// Reads a whole checkpoint, for tests that compare one with another.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "framework/files/checkpoint.h"
#include "framework/files/checkpoint_folder.h"
#include "framework/files/hdf5.h"

namespace antichain::test {

// Returns every tensor of a checkpoint by its name, whatever the files it is in.
inline std::map<std::string, NamedTensor> checkpoint_contents(const std::string& checkpoint) {
  std::map<std::string, NamedTensor> all;
  for (const CheckpointFile& file : verify_checkpoint(checkpoint).files) {
    std::vector<std::string> paths;
    for (const CheckpointTensor& tensor : file.tensors) paths.push_back(tensor.path);
    for (NamedTensor& tensor : read_hdf5(read_checkpoint_file(checkpoint, file), paths, file.name))
      all[tensor.name] = std::move(tensor);
  }
  return all;
}

}  // namespace antichain::test
