// Reads the rules for kernels off the emulated device (docs/gpu.md, "Rules for kernels"): how often each
// operator launches in a forward and a backward, that it copies nothing to the host, and that work is spread
// over many blocks.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/cuda/product.h"
#include "layers/global_pool.h"
#include "tests/layers/cuda_on_host/backend.h"
#include "tests/layers/emulated/device.h"
#include "tests/layers/op_cases.h"
#include "tests/layers/op_harness.h"

namespace antichain::harness {
namespace {

struct Counts {
  int64_t launches = 0, blocks = 0, copies = 0;
};

Counts counts_of(const std::function<void()>& work) {
  const int64_t launches = emulated::launches(), blocks = emulated::blocks(), copies = copies_on_host();
  work();
  return {emulated::launches() - launches, emulated::blocks() - blocks, copies_on_host() - copies};
}

// Returns the counts of a training step's forward and backward.
std::pair<Counts, Counts> counts_of(const OpCase& c) {
  std::vector<Counts> all;
  run(backend("cuda_on_host"), c, draw(c),
      {.offered = Layout::nhwc, .around = [&](const auto& call) { all.push_back(counts_of(call)); }});
  return {all.at(1), all.at(2)};
}

// Forward and backward; convolutions and products by our own loops.
const std::map<std::string, std::pair<int, int>> most_launches = {
    {"activate", {1, 1}},
    {"adaptive_average_pool", {1, 1}},
    {"add", {1, 2}},
    {"attention", {1, 3}},
    {"average_pool", {1, 1}},
    {"batch_norm", {3, 3}},
    {"class_token", {1, 2}},
    {"computed", {17, 20}},  // with weights that are computed in six steps, or by spectral_norm
    {"concat", {3, 3}},
    {"constant", {1, 1}},
    {"conv2d", {2, 4}},
    {"conv_transpose2d", {2, 4}},
    {"dropout", {1, 1}},
    {"elementwise", {1, 2}},
    {"embedding", {1, 3}},
    {"flatten", {1, 1}},
    {"formula_loss", {2, 2}},
    {"gather", {1, 1}},
    {"global_average_pool", {1, 1}},
    {"group_norm", {6, 5}},
    {"interpolate", {1, 2}},
    {"layer_norm", {2, 4}},
    {"layer_scale", {1, 3}},
    {"linear", {2, 4}},
    {"matmul", {1, 2}},
    {"max_pool", {1, 1}},
    {"mean", {1, 1}},
    {"multiply", {1, 2}},
    {"permute", {1, 1}},
    {"relu", {1, 1}},
    {"reshape", {1, 1}},
    {"rotary", {1, 1}},
    {"slice", {1, 1}},
    {"softmax", {3, 2}},
    {"softmax_cross_entropy", {4, 1}},
    {"stochastic_depth", {1, 1}},
};

TEST(OperatorRules, EachOperatorLaunchesAsOftenAsSaidAndCopiesNothingToTheHost) {
  register_cuda_on_host();
  std::set<std::string> seen;
  for (const OpCase& c : cases()) {
    if (!carries_out(backend("cuda_on_host"), c)) continue;
    SCOPED_TRACE(c.name);
    const std::string type(c.op->type());
    seen.insert(type);
    const auto [forward, backward] = counts_of(c);
    if (!most_launches.contains(type)) {
      ADD_FAILURE() << "a new operator says how often it launches: " << type << " " << forward.launches << " "
                    << backward.launches;
      continue;
    }
    const auto& [most_forward, most_backward] = most_launches.at(type);
    EXPECT_LE(forward.launches, most_forward) << type;
    EXPECT_LE(backward.launches, most_backward) << type;
    EXPECT_EQ(forward.copies + backward.copies, 0);
  }
  EXPECT_EQ(seen.size(), most_launches.size());
}

// As in the first block of EfficientNet-B0 on ImageNet's images.
TEST(OperatorRules, MeansOfManyPixelsAreSpreadOverManyBlocks) {
  register_cuda_on_host();
  const Counts counts =
      counts_of({"pool", std::make_shared<GlobalAveragePool>(), {{13, 32, 112, 112}}}).first;
  EXPECT_GE(counts.blocks, 112 * 112 / 1024);
}

// A block takes 32 numbers of both factors between two barriers, and uses each 32 times.
TEST(OperatorRules, ProductsReadTheirFactorsInTiles) {
  constexpr cuda::Index rows = 40, inner = 100, columns = 70;
  const std::vector<float> a(rows * inner, 1), b(inner * columns, 2);
  std::vector<float> product(rows * columns);
  const int64_t meetings = emulated::meetings();
  const Counts counts = counts_of([&] {
    cuda::multiply(nullptr, {a.data(), b.data(), rows, inner, columns, false},
                   [to = product.data()](cuda::Index i, float sum) { to[i] = sum; });
  });
  EXPECT_EQ(product, std::vector<float>(rows * columns, 2 * inner));
  EXPECT_EQ(counts.blocks, 2 * 3);
  EXPECT_EQ(emulated::meetings() - meetings, 2 * 3 * 2 * 4);
}

}  // namespace
}  // namespace antichain::harness
