// This measures how near fused chains of elementwise functions come to the bandwidth of memory, which the
// same run measures by a sum of two arrays, in turns with them and on one thread. A chain's bytes are those
// of its tensors: forward reads the inputs and writes y; backward reads the inputs that it needs and dy, and
// writes the gradients. It is to be run when nothing else computes.
//
//   chain_bandwidth [--at-least SHARE]      at least 0.7 is the aim; 0, the default, fails nothing
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/backend.h"
#include "layers/elementwise.h"
#include "pipeline/host/median.h"
#include "pipeline/host/seconds.h"
#include "tests/cpu_engine.h"

namespace antichain {
namespace {

// 64 MiB a tensor, which no cache holds.
const Shape shape = {16, 64, 128, 128};
constexpr int turns = 9;

struct Chain {
  std::string name;
  int inputs;
  std::vector<std::string> steps;
};
// Those that people write: a residual block's end, a normalised image, a gate, activation functions.
const std::vector<Chain> chains = {
    {"relu(a + b)", 2, {"add x0 x1", "relu s0"}},
    {"(a - 0.5) / 0.25", 1, {"subtract x0 0.5", "divide s0 0.25"}},
    {"clamp(a, 0, 6) b", 2, {"clamp x0 0 6", "multiply s0 x1"}},
    {"leaky_relu(a b + c)", 3, {"multiply x0 x1", "add s0 x2", "leaky_relu s1 0.1"}},
    {"a sigmoid(b)", 2, {"sigmoid x1", "multiply x0 s0"}},
    {"mish", 1, {"mish x0"}},
    {"sin(30 a)", 1, {"multiply x0 30", "sin s0"}},
};

class Measured {
 public:
  explicit Measured(const Chain& chain)
      : op_(ElementwiseOptions{.steps = chain.steps}), context_(cpu_engine()) {
    const std::vector<Shape> shapes(size_t(chain.inputs), shape);
    const std::vector<Layout> offered(shapes.size(), Layout::plain);
    const KernelEntry& entry = cpu_engine().entry(op_.type());
    lowering_ = entry.lower(op_, shapes, offered, Precision::float32);
    const std::vector<TensorSpec> specs(shapes.size(), TensorSpec{shape});
    kernel_ = entry.make(op_, specs, lowering_);
    for (int i = 0; i < chain.inputs; ++i) x_.push_back(filled(0.1f + 0.3f * float(i)));
    for (int i = 0; i < chain.inputs; ++i) dx_.push_back(filled(0));
    y_ = filled(0), dy_ = filled(1);
  }

  void forward() { kernel_->forward(context_, {.x = x_, .y = y_, .mode = Mode::train}); }
  void backward() {
    std::vector<Tensor> kept = x_;
    for (size_t i = 0; i < kept.size(); ++i)
      if (!lowering_.keeps(i)) kept[i] = {};
    kernel_->backward(context_, {.x = kept, .y = lowering_.keeps_y ? y_ : Tensor(), .dy = dy_, .dx = dx_});
  }
  int64_t forward_bytes() const { return int64_t(x_.size() + 1) * y_.bytes(); }
  int64_t backward_bytes() const {
    int64_t kept = lowering_.keeps_y;
    for (size_t i = 0; i < x_.size(); ++i) kept += lowering_.keeps(i);
    return (kept + 1 + int64_t(dx_.size())) * y_.bytes();
  }

 private:
  static Tensor filled(float value) {
    Tensor t = Tensor::host({shape});
    std::fill_n(t.data<float>(), t.elements(), value);
    return t;
  }
  const Elementwise op_;
  Context context_;
  Lowering lowering_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<Tensor> x_, dx_;
  Tensor y_, dy_;
};

template <class Work>
double seconds_of(const Work& work) {
  const double start_s = now_s();
  work();
  return now_s() - start_s;
}

int run(double at_least) {
  const int64_t count = shape.elements();
  std::vector<float> a(size_t(count), 1), b(size_t(count), 2), c(size_t(count), 0);
  bool reached = true;
  fmt::print("{:<20}  {:>7}  {:>7}  {:>9}  {:>7}  {:>9}\n", "GB/s", "memory", "forward", "of memory",
             "backward", "of memory");
  for (const Chain& chain : chains) {
    Measured it(chain);
    std::vector<double> memory, forward, backward;
    for (int turn = 0; turn < turns; ++turn) {
      memory.push_back(seconds_of([&] { std::ranges::transform(a, b, c.begin(), std::plus<float>()); }));
      forward.push_back(seconds_of([&] { it.forward(); }));
      backward.push_back(seconds_of([&] { it.backward(); }));
    }
    const double of_memory = 12e-9 * double(count) / median(memory),
                 there = 1e-9 * double(it.forward_bytes()) / median(forward),
                 back = 1e-9 * double(it.backward_bytes()) / median(backward);
    fmt::print("{:<20}  {:7.2f}  {:7.2f}  {:9.2f}  {:7.2f}  {:9.2f}\n", chain.name, of_memory, there,
               there / of_memory, back, back / of_memory);
    reached = reached && std::min(there, back) >= at_least * of_memory;
  }
  fmt::print("(the last sum is {})\n", c[size_t(count) / 2]);  // so that it is computed
  return reached ? 0 : 1;
}

}  // namespace
}  // namespace antichain

int main(int argc, char** argv) { return antichain::run(argc > 2 ? std::stod(argv[2]) : 0); }
