// Two tensors that may be too large for memory, "labels" and "images", written to a file piece by piece: as
// safetensors or HDF5, readable like any file of ours.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/part_file.h"
#include "framework/files/hdf5_arrays.h"
#include "framework/files/weights.h"

namespace antichain {

class TensorStream {
 public:
  // All labels come first, piece by piece; then images, by whole ones.
  TensorStream(const std::string& file, WeightFormat, std::vector<int64_t> images_shape);
  void append_labels(std::span<const int64_t>);
  void append(std::span<const float> images);
  void finish();  // the file has its name from here on. Error when it can't be written.

 private:
  void write(std::span<const std::byte>);
  std::string name_;
  PartFile part_;
  std::ofstream plain_;                // safetensors
  std::unique_ptr<ArrayWriter> hdf5_;  // or HDF5
};

}  // namespace antichain
