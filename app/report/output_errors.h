// OutputErrors are what an evaluation says of a network's output beside the loss: how far numbers are from
// their targets, and how well classes cover the positions that have them.
//
//   a formula of output − target      mean absolute error, mean squared error, over all elements
//   a label for each position         mean IoU: of each class that occurs, the positions that have it in
//                                     output and labels, as a share of those that have it in either; then
//                                     the mean over these classes
//
// Positions are left out whose labels the loss ignores. IoU is the "mean IU" of Long, Shelhamer and Darrell,
// "Fully Convolutional Networks for Semantic Segmentation", CVPR 2015, section 5.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "framework/graph.h"
#include "framework/tensor.h"
#include "pipeline/train/output_sums.h"

namespace antichain {

class OutputErrors {
 public:
  // Those of the model's own loss, which is its last node; none for networks that read tokens.
  explicit OutputErrors(const Graph&);

  // Returns what is added up over parts of a test set; it refers to this object.
  OutputSums sums() const;

  struct Mean {
    std::string key, name;  // "mean_iou", "mean IoU"
    double value;
  };
  std::vector<Mean> means(std::span<const double> sums) const;

 private:
  void add_differences(std::span<const float> output, const Tensor& targets, int64_t samples,
                       std::span<double> sums) const;
  void add_classes(std::span<const float> output, const Tensor& labels, int64_t samples,
                   std::span<double> sums) const;

  const Op* loss_ = nullptr;
  OutputSums sums_;                      // without `add`
  int64_t classes_ = 0, positions_ = 0;  // of a sample; 0 where there are no classes
  bool classes_last_ = false;
};

// Returns ", mean IoU 0.713"; "" where there are no means.
std::string and_means(const std::vector<OutputErrors::Mean>&);

}  // namespace antichain
