// The ten networks, forward and backward, on a second engine beside the CPU's: the CUDA engine, or its kernels as loops of
// the host. Layouts, reorders and fusion are that engine's own.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "layers/cpu/backend.h"
#include "models/model.h"
#include "tests/models/golden.h"
#include "tests/models/graph_run.h"
#include "tests/models/judged_engine.h"

namespace antichain {
namespace {

double norm(const std::vector<double>& a, const std::vector<double>* b = nullptr) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - (b ? (*b)[i] : 0)) * (a[i] - (b ? (*b)[i] : 0));
  return sum;
}

const Backend& cpu() {
  register_cpu_backend();
  return backend("cpu");
}

// For loops of the host.
bool large(const std::string& model) { return model != "squeezenet1_0"; }

class Agreement : public testing::TestWithParam<GoldenErrors> {};

// Between two float32 engines: per tensor, each is allowed four times what PyTorch's float32 is off from float64 on this
// batch (tests/models/exactness_test.cpp), so the two may be eight times as far apart.
TEST_P(Agreement, WithTheCpu) {
  std::string why;
  const Backend* engine = compared_engine(why);
  if (!engine) GTEST_SKIP() << why;
  const GoldenErrors& c = GetParam();
  if (engine->host_memory() && large(c.model) && !std::getenv("ANTICHAIN_LARGE_TESTS"))
    GTEST_SKIP() << "takes minutes on the host: set ANTICHAIN_LARGE_TESTS=1";
  const Graph graph = make_model(c.model, {.form = c.form, .microbatch = 2, .image = c.image, .dropout = 0});
  const Start start = [&](const Tensor& plain, std::string_view name) {
    if (name == "images") return draw_golden_images(plain, c.batches.at(0));
    draw_golden(plain, name);
    const auto node = std::string(name.substr(0, name.rfind('.')));
    if (name.ends_with(".bias") && graph[graph.find(node)].op->type() == "batch_norm")
      for (int64_t i = 0; i < plain.elements(); ++i) plain.data<float>()[i] += c.shift;
  };
  const GraphResults right = run_graph(graph, cpu(), start), ours = run_graph(graph, *engine, start);
  double whole = 0;
  for (const auto& [name, gradient] : right.gradients) whole += norm(gradient);
  EXPECT_LE(std::sqrt(norm(ours.logits, &right.logits) / norm(right.logits)), 8 * c.errors.at("logits"));
  for (const auto& [name, gradient] : right.gradients)
    EXPECT_LE(std::sqrt(norm(ours.gradients.at(name), &gradient) / whole), 8 * c.errors.at(name)) << name;
  const GraphResults again = run_graph(graph, *engine, start);
  EXPECT_EQ(again.losses, ours.losses);
  EXPECT_EQ(again.gradients, ours.gradients);
}

std::vector<GoldenErrors> cifar() {
  std::vector<GoldenErrors> all = read_golden_errors();
  std::erase_if(all, [](const GoldenErrors& c) { return c.form != Form::cifar; });
  return all;
}
INSTANTIATE_TEST_SUITE_P(Cifar, Agreement, testing::ValuesIn(cifar()),
                         [](const auto& info) { return info.param.model; });

}  // namespace
}  // namespace antichain
