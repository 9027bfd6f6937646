// What tests/golden holds: weights that Python and C++ draw alike, and the losses that PyTorch computes from them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/tensor.h"
#include "models/model.h"

namespace antichain {

// Fills a parameter or the images exactly as tests/golden/networks.py does.
void draw_golden(const Tensor& plain, std::string_view full_name);

// A line of tests/golden/losses.txt, which tests/golden/losses.py writes and explains.
struct GoldenLosses {
  std::string model;
  Form form;
  int image;
  double aux;
  std::vector<double> losses;  // per sample
  double gradient_norm;        // over all parameters
  friend void PrintTo(const GoldenLosses& g, std::ostream* out) { *out << g.model; }
};
std::vector<GoldenLosses> read_golden_losses();

}  // namespace antichain
