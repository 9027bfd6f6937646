// Reads tests/golden: weights that Python and C++ draw alike, and the losses that PyTorch computes from them.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/tensor.h"
#include "models/model.h"

namespace antichain {

// Fills a parameter or the images exactly as tests/golden/networks.py does; whole numbers stay as they are.
void draw_golden(const Tensor& plain, std::string_view full_name);

// Returns whether the cases of a network are named Large, so that only ./test.sh --all runs them.
// Some networks take gigabytes in double precision. Others show little that a smaller one does not:
// * Networks of 101 layers have the blocks of those of 50.
// * ResNeXt-50 has the blocks of ResNet-50, but with grouped convolutions.
// * In the form for large images, ResNet-50 and DenseNet-121 begin as ResNet-18 does.
bool large(std::string_view model, Form form);

// A GoldenLosses is a line of tests/golden/losses.txt, which tests/golden/losses.py writes and explains.
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

// A GoldenErrors is a network of tests/golden/gradients.txt: how it is drawn, far from every kink, and how
// far PyTorch's float32 is from float64, relative and in the L2 norm. tests/golden/gradients.py writes and
// explains it.
struct GoldenErrors {
  std::string model;
  Form form;
  int image;
  float shift;                              // added to the biases of batch norm
  std::vector<std::array<int, 2>> batches;  // two samples each
  std::map<std::string, double> errors;     // by full parameter name; "logits", "losses"
  friend void PrintTo(const GoldenErrors& g, std::ostream* out) { *out << g.model; }
};
std::vector<GoldenErrors> read_golden_errors();

// Fills images (N x 3 x H x H) with the numbered samples, exactly as tests/golden/gradients.py does.
void draw_golden_images(const Tensor& images, std::span<const int> samples);

// A GoldenSteps is a line of tests/golden/five_steps.txt, for a network of gradients.txt and its first batch.
struct GoldenSteps {
  std::string model;
  float rate;
  std::vector<double> losses;  // in float64: before each step, and after the last
  friend void PrintTo(const GoldenSteps& g, std::ostream* out) { *out << g.model; }
};
// Returns those of the networks that take seconds, or of the others.
std::vector<GoldenSteps> read_golden_steps(bool large);

// A GoldenNetwork is a network of tests/golden/language.txt, which tests/golden/language.py writes and
// explains: its loss of the first batch in float64, and how far PyTorch's float32 is from that.
struct GoldenGradient {
  double norm = 0, error = 0;
};
struct GoldenNetwork {
  std::string name;
  double loss = 0, error = 0;                       // of all gradients together
  std::map<std::string, GoldenGradient> gradients;  // by the parameters' names
  friend void PrintTo(const GoldenNetwork& g, std::ostream* out) { *out << g.name; }
};
struct GoldenLanguage {
  std::vector<GoldenNetwork> networks;
  std::vector<int> continuation;  // tokens of "gpt2", of which five were given
};
GoldenLanguage read_golden_language();

// Returns the number at this index that tests/golden/networks.py draws by this name, from −1 to 1.
double drawn_golden(std::string_view name, int64_t index);

// The network of a line of gradients.txt, and what it starts from: its weights, and one of the batches.
Graph network_of(const GoldenErrors&);
std::function<void(const Tensor& plain, std::string_view full_name)> start_of(const GoldenErrors&,
                                                                              const Graph&, size_t batch = 0);

}  // namespace antichain
