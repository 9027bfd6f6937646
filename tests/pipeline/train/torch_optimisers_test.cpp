// Each optimiser is held to PyTorch's over the 100 steps that tests/golden/optimisers.py recorded in float64,
// on the network of that file. Weights, gradients and slots are float32 here; what the network computes is in
// double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "framework/adamw.h"
#include "framework/backend.h"
#include "framework/muon.h"
#include "framework/sgd.h"
#include "layers/cpu/backend.h"
#include "pipeline/run/gradient_norm.h"

namespace antichain {
namespace {

constexpr int inputs = 6, hidden = 7, outputs = 4, examples = 8, torch_steps = 100;

std::vector<double> sines(int64_t count, double phase) {
  std::vector<double> all;
  for (int64_t i = 0; i < count; ++i) all.push_back(std::sin(1.7 * double(i) + phase));
  return all;
}

Trained parameter_of(const TensorSpec& spec, double scale, double phase, const Optimiser& optimiser) {
  Trained t{Tensor::host(spec), Tensor::host(spec), {}, {}};
  const std::vector<double> values = sines(spec.elements(), phase);
  for (size_t i = 0; i < values.size(); ++i) t.w.data<float>()[i] = float(scale * values[i]);
  const ParamSpec param{.shape = spec.shape, .hidden_matrix = spec.shape.rank() == 2};
  for (size_t n = optimiser.slots(param).size(); n > 0; --n) t.slots.push_back(Tensor::host(spec));
  return t;
}

// W1, b1, W2, b2 of y = b2 + W2 tanh(b1 + W1 x).
using Net = std::vector<Trained>;

// Fills the gradients of the mean over samples and outputs of (y − target)² / 2.
void differentiate(const Net& net, const std::vector<double>& x, const std::vector<double>& target) {
  std::vector<std::vector<double>> d;
  for (const Trained& t : net) d.emplace_back(size_t(t.w.elements()), 0.0);
  const auto w = [&](int parameter, int i) { return double(net[size_t(parameter)].w.data<float>()[i]); };
  for (int n = 0; n < examples; ++n) {
    double h[hidden], dh[hidden] = {};
    for (int j = 0; j < hidden; ++j) {
      h[j] = w(1, j);
      for (int i = 0; i < inputs; ++i) h[j] += w(0, j * inputs + i) * x[size_t(n * inputs + i)];
      h[j] = std::tanh(h[j]);
    }
    for (int k = 0; k < outputs; ++k) {
      double y = w(3, k);
      for (int j = 0; j < hidden; ++j) y += w(2, k * hidden + j) * h[j];
      const double dy = (y - target[size_t(n * outputs + k)]) / (examples * outputs);
      d[3][size_t(k)] += dy;
      for (int j = 0; j < hidden; ++j)
        d[2][size_t(k * hidden + j)] += dy * h[j], dh[j] += dy * w(2, k * hidden + j);
    }
    for (int j = 0; j < hidden; ++j) {
      const double dz = dh[j] * (1 - h[j] * h[j]);
      d[1][size_t(j)] += dz;
      for (int i = 0; i < inputs; ++i) d[0][size_t(j * inputs + i)] += dz * x[size_t(n * inputs + i)];
    }
  }
  for (size_t p = 0; p < net.size(); ++p)
    for (size_t i = 0; i < d[p].size(); ++i) net[p].dw.data<float>()[i] = float(d[p][i]);
}

void clip(const Net& net, double most) {
  SquaresByName squares;
  for (size_t p = 0; p < net.size(); ++p)
    for (int64_t i = 0; i < net[p].dw.elements(); ++i)
      squares[std::to_string(p)] += std::pow(double(net[p].dw.data<float>()[i]), 2);
  const float factor = clip_factor(squares, most);
  for (const Trained& t : net)
    for (int64_t i = 0; i < t.dw.elements(); ++i) t.dw.data<float>()[i] *= factor;
}

std::vector<double> train_as_torch(const std::shared_ptr<const Optimiser>& optimiser, float rate,
                                   double most) {
  register_cpu_backend();
  Context context(backend("cpu"));
  const Net net = {parameter_of({{hidden, inputs}}, 0.5, 0.1, *optimiser),
                   parameter_of({{hidden}}, 0.1, 0.2, *optimiser),
                   parameter_of({{outputs, hidden}}, 0.5, 0.3, *optimiser),
                   parameter_of({{outputs}}, 0.1, 0.4, *optimiser)};
  const std::vector<double> x = sines(examples * inputs, 0.5), target = sines(examples * outputs, 0.6);
  const std::unique_ptr<Update> update = context.backend().make_update(optimiser, context, net);
  for (uint64_t step = 0; step < torch_steps; ++step) {
    differentiate(net, x, target);
    if (most > 0) clip(net, most);
    update->run(context, {rate, step});
  }
  std::vector<double> last;
  for (const Trained& t : net) last.insert(last.end(), t.w.data<float>(), t.w.data<float>() + t.w.elements());
  return last;
}

std::map<std::string, std::vector<double>> recorded_weights() {
  std::ifstream file(ANTICHAIN_GOLDEN "/optimisers.txt");
  std::map<std::string, std::vector<double>> all;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    if (words >> name; name == "#") continue;
    for (double x = 0; words >> x;) all[name].push_back(x);
  }
  return all;
}

struct TorchCase {
  std::string name;
  std::shared_ptr<const Optimiser> optimiser;
  float rate;
  double most = 0;  // norm of the gradients
};

const auto all_decay = DecayGroups::all, weights_decay = DecayGroups::weights;
const TorchCase torch_cases[] = {
    {"sgd",
     std::make_shared<Sgd>(
         SgdOptions{.momentum = 0.9f, .weight_decay = 0.01f, .nesterov = true, .decay_groups = all_decay}),
     0.1f},
    {"sgd_plain_weights",
     std::make_shared<Sgd>(SgdOptions{
         .momentum = 0.9f, .weight_decay = 0.01f, .nesterov = false, .decay_groups = weights_decay}),
     0.1f},
    {"adamw", std::make_shared<AdamW>(AdamWOptions{.weight_decay = 0.1, .decay_groups = weights_decay}),
     0.01f},
    {"adamw_all",
     std::make_shared<AdamW>(AdamWOptions{
         .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.1, .decay_groups = all_decay}),
     0.02f},
    {"adamw_clipped",
     std::make_shared<AdamW>(AdamWOptions{.weight_decay = 0.1, .decay_groups = weights_decay}), 0.01f, 0.05},
    {"muon", std::make_shared<Muon>(MuonOptions{}), 0.01f},
};

class TorchOptimisers : public ::testing::TestWithParam<TorchCase> {};

// The error is that of all weights together. 100 updates in float32 each round to half of 2⁻²³: added up at
// random they make 6e-7, and all in one direction 6e-6.
TEST_P(TorchOptimisers, AreFollowedForAHundredSteps) {
  const TorchCase& c = GetParam();
  const std::map<std::string, std::vector<double>> all = recorded_weights();
  ASSERT_TRUE(all.contains(c.name)) << "tests/golden/optimisers.py writes tests/golden/optimisers.txt";
  const std::vector<double>& right = all.at(c.name);
  const std::vector<double> ours = train_as_torch(c.optimiser, c.rate, c.most);
  ASSERT_EQ(ours.size(), right.size());
  double apart = 0, length = 0;
  for (size_t i = 0; i < right.size(); ++i)
    apart += std::pow(ours[i] - right[i], 2), length += std::pow(right[i], 2);
  EXPECT_LT(std::sqrt(apart / length), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Recorded, TorchOptimisers, ::testing::ValuesIn(torch_cases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace antichain
