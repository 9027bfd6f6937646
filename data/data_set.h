// A data set is a numbered collection of labelled images, which are bytes in files. Everything random about
// training (order, crops, flips) is a function of (seed, epoch, index) elsewhere, so that any rank can draw
// any sample.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/tensor.h"

namespace antichain {

// Mean and deviation are those of a set's training pixels, scaled to [0, 1], per channel: red, green, blue;
// or three times that of grey.
struct Normalisation {
  std::array<float, 3> mean{0.4914f, 0.4822f, 0.4465f}, deviation{0.2470f, 0.2435f, 0.2616f};  // CIFAR-10's
};

class DataSet {
 public:
  virtual ~DataSet() = default;
  virtual std::string name() const = 0;   // labels every output: "CIFAR-10", "generated (not CIFAR-10)"
  virtual int64_t size() const = 0;       // images
  virtual Shape image_shape() const = 0;  // C x H x W, C = 3 or 1: grey
  virtual std::span<const std::string> class_names() const = 0;  // one per class, in label order
  // Copies image `index` (C planes, row-major) to `out` (C·H·W bytes). Safe from several threads. Throws
  // Error naming file and record when it can't be read any more.
  virtual void image(int64_t index, std::span<uint8_t> out) const = 0;
  virtual int label(int64_t index) const = 0;  // 0 … classes − 1
  virtual Normalisation normalisation() const { return {}; }
  // Returns a hash of all labels and images, in their order, with the images' size. Where images are more
  // than 256 MiB, it covers a sample of 256 MiB that is evenly spread; a set that is read as a whole anyway
  // hashes all.
  virtual uint64_t contents() const;
  // Returns the files that are read whenever an image is asked for; a set in memory has none.
  virtual std::vector<std::string> files() const { return {}; }
  // Returns a sentence naming the file when another one has taken its name since it was opened; otherwise "".
  virtual std::string replaced() const { return ""; }

  int classes() const { return int(class_names().size()); }
};

struct DataSplits {
  std::shared_ptr<const DataSet> train, test;
};

}  // namespace antichain
