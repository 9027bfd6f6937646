// A data set is a numbered collection of labelled images, kept as bytes; everything random about training (order,
// crops, flips) is a function of (seed, epoch, index) elsewhere, so that any rank can draw any sample.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/tensor.h"

namespace antichain {

class DataSet {
 public:
  virtual ~DataSet() = default;
  virtual std::string name() const = 0;   // labels every output: "CIFAR-10", "generated (not CIFAR-10)"
  virtual int64_t size() const = 0;       // images
  virtual Shape image_shape() const = 0;  // C x H x W
  virtual std::span<const std::string> class_names() const = 0;  // one per class, in label order
  // Copies image `index` (C planes, row-major) to `out` (C·H·W bytes). Safe from several threads.
  virtual void image(int64_t index, std::span<uint8_t> out) const = 0;
  virtual int label(int64_t index) const = 0;  // 0 … classes − 1

  int classes() const { return int(class_names().size()); }
};

struct DataSplits {
  std::shared_ptr<const DataSet> train, test;
};

}  // namespace antichain
