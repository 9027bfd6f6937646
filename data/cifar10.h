// Reads CIFAR-10 in its official binary layout (Krizhevsky, "Learning Multiple Layers of Features from Tiny
// Images", 2009): files data_batch_1.bin … data_batch_5.bin and test_batch.bin of records. Each record has 1
// label byte and 3072 pixel bytes (red, green and blue planes, row-major, 32 x 32).
//
// Shorter files, and fewer of them, are a legal subset. A folder with a file named GENERATED is not CIFAR-10
// but has its layout; its data set says so in its name.
#pragma once

#include <string>
#include <string_view>

#include "data/data_set.h"

namespace antichain {

struct Cifar10Format {
  static constexpr int64_t side = 32, pixel_bytes = 3 * side * side, record_bytes = 1 + pixel_bytes;
  static constexpr int64_t train_images = 50'000, test_images = 10'000, images_per_file = 10'000;
  static constexpr int classes = 10, train_files = 5;
  static constexpr std::string_view folder = "cifar-10-batches-bin";
  static constexpr std::string_view names_file = "batches.meta.txt";
  static constexpr std::string_view generated_marker = "GENERATED";
  static std::string train_file(int number);  // 1 … 5
  static std::string test_file();
};

// Returns both splits of `directory` (or of its sub-folder cifar-10-batches-bin). Reads the files once and
// keeps the labels; images are read when they are requested. Throws Error naming the file when one is
// missing, its size is no multiple of 3073, or a label byte is above 9 (with the record's number).
DataSplits read_cifar10(const std::string& directory);

}  // namespace antichain
