// Images in an HDF5 file: bytes in planes or in pixels, with what the file says of their mean and deviation.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/data_set.h"
#include "data/watched_file.h"
#include "framework/files/hdf5_arrays.h"

namespace antichain {

// Both splits of a set share an OpenHdf5.
struct OpenHdf5 {
  explicit OpenHdf5(const std::string& file) : watched(file), reader(file) {}
  ArrayReader::Opened open(const std::string& path, ArrayType);
  ArrayReader::Opened open_any(const std::string& path) { return open(path, reader.type_of(path)); }
  void check_unchanged(int64_t record) const;
  // Returns the file and those that virtual datasets are put together from.
  std::vector<std::string> files() const;
  // Returns a sentence that names a file that is another one now, or "".
  std::string replaced() const;
  // Returns the set's name: the attribute `name` of the root, else that of the file without its ending.
  std::string name() const;

  WatchedFile watched;  // first: a change while HDF5 opens it is seen
  ArrayReader reader;
  std::vector<std::unique_ptr<WatchedFile>> sources;  // of virtual datasets
};

class Hdf5Images {
 public:
  // Throws Error naming file and array when it is none of images: data/hdf5_set.h says what one is.
  Hdf5Images(std::shared_ptr<OpenHdf5>, const std::string& path);
  int64_t count() const { return images_.spec.shape[0]; }
  const std::string& path() const { return images_.spec.path; }
  Shape shape() const { return {layout_.channels, layout_.height, layout_.width}; }  // C x H x W
  // Copies image `index` to `out`, in planes.
  void read(int64_t index, std::span<uint8_t> out) const;

 private:
  struct Layout {  // of one image in the file
    int64_t channels = 3, height = 0, width = 0;
    bool interleaved = false;  // H x W x C
    int64_t bytes() const { return channels * height * width; }
  };
  Layout layout() const;
  void read_stored(int64_t index, std::span<uint8_t> out) const;

  std::shared_ptr<OpenHdf5> file_;
  ArrayReader::Opened images_;
  Layout layout_;
};

// Returns what the file's attributes mean and std say. Without them it computes mean and deviation of up to
// 4,096 images for training, which are evenly spread. It adds up whole numbers, so every rank gets the same.
Normalisation normalisation_of(const OpenHdf5&, const Hdf5Images& train);

}  // namespace antichain
