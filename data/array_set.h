// Reads arrays of any names from an HDF5 file, in which /train/NAME and /test/NAME have the samples first:
// float32, bytes, or other integers, which must fit int32.
#pragma once

#include <string>
#include <vector>

#include "data/data_set.h"

namespace antichain {

// Says which array of the file an input of the network reads.
struct AssignedArray {
  std::string input, array;
  bool computed_with = true;  // false: only losses read it
};

// The sets' arrays have the names of the inputs. Bytes that the network computes with and that are images
// (data/hdf5_set.h) have pixels; so they do where a loss reads the same array. Other bytes are numbers.
// Throws Error when an array is missing, empty, of another type, or has not one row for each sample.
DataSplits read_array_set(const std::string& file, const std::vector<AssignedArray>&);

}  // namespace antichain
