// Tests that two engines have one arithmetic. Operators that only move numbers, or compute each from the same
// few in the same order, give the CPU engine's bits in the CUDA engine, in either precision. So does reorder,
// which rounds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "framework/bf16.h"
#include "framework/random.h"
#include "framework/reorder.h"
#include "layers/cpu/backend.h"
#include "layers/cpu/dnnl.h"
#include "tests/layers/engines.h"
#include "tests/layers/op_cases.h"
#include "tests/layers/op_harness.h"

namespace antichain::harness {
namespace {

constexpr std::string_view same[] = {"activate",
                                     "adaptive_average_pool",
                                     "add",
                                     "average_pool",
                                     "concat",
                                     "dropout",
                                     "flatten",
                                     "global_average_pool",
                                     "interpolate",
                                     "max_pool",
                                     "permute",
                                     "relu",
                                     "reshape",
                                     "slice",
                                     "stochastic_depth"};

class SameBits : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    register_cpu_backend();
    std::string why;
    engine_ = find(GetParam(), why);
    if (!engine_) GTEST_SKIP() << why;
  }

  template <class T, class U>
  void expect_reordered(const Shape& shape, Layout from, Layout to) const;

  const Backend* engine_ = nullptr;
};

TEST_P(SameBits, OfOperators) {
  const Precision precision = GetParam().precision;
  int compared = 0;
  for (const OpCase& c : cases()) {
    if (std::ranges::find(same, c.op->type()) == std::end(same)) continue;
    SCOPED_TRACE(c.name);
    Values values = draw(c);
    if (precision == Precision::bf16) values = rounded_to_bf16(values);
    const Results cpu = run(backend("cpu"), c, values, {.offered = Layout::nChw16c, .precision = precision});
    for (const Layout offered : GetParam().layouts)
      EXPECT_EQ(run(*engine_, c, values, {.offered = offered, .precision = precision}), cpu);
    ++compared;
  }
  EXPECT_GT(compared, 30);
}

// ReLU in the pass of the bias gives what a ReLU behind it gives, in both directions.
TEST_P(SameBits, OfReluFusedAndBehind) {
  const Precision precision = GetParam().precision;
  int compared = 0;
  for (const OpCase& c : cases()) {
    if (!c.fused) continue;
    SCOPED_TRACE(c.name);
    Values values = draw(c);
    if (precision == Precision::bf16) values = rounded_to_bf16(values);
    const Results fused = run(*engine_, c, values, {.precision = precision});
    for (size_t i = 0; i < fused.y.size(); ++i)
      if (!(fused.y[i] > 0)) values.dy[i] = 0;
    Results apart = run(*engine_, without_relu(c), values, {.precision = precision});
    for (Numbers* y : {&apart.y, &apart.evaluated})
      for (double& v : *y) v = v < 0 ? 0 : v;
    EXPECT_EQ(fused, apart);
    compared += std::ranges::count(values.dy, 0) > 1;
  }
  EXPECT_GT(compared, 5);
}

// These are the numbers that a rounding to bf16 can meet: ties of even and odd neighbours, the largest
// numbers, subnormal ones, both zeros.
std::vector<float> awkward(int64_t count) {
  std::vector<float> numbers = {0.0f,
                                -0.0f,
                                1.00390625f,
                                1.01171875f,
                                1.0039063f,
                                1.00390613f,
                                -1.00390625f,
                                3.3895313e38f,
                                3.3961776e38f,
                                std::numeric_limits<float>::max(),
                                1e-40f,
                                1e-45f,
                                std::numeric_limits<float>::infinity()};
  const Philox random(5);
  for (uint64_t i = 0; int64_t(numbers.size()) < count; ++i)
    numbers.push_back((Philox::uniform(random.words(i)[0]) - 0.5f) * 8);
  return numbers;
}

Tensor in_layout(const Tensor& host, Layout layout) {
  const Tensor moved = Tensor::host({host.shape(), host.dtype(), layout});
  relayout(host, moved);
  return moved;
}

// Copies `host`, of any layout, to a tensor of the backend, and back to plain.
Tensor there(const Context& context, const Tensor& host) {
  const Tensor tensor = context.backend().tensor(host.spec());
  context.backend().copy(context, host, tensor);
  return tensor;
}
Tensor here(const Context& context, const Tensor& tensor) {
  const Tensor host = Tensor::host(tensor.spec());
  context.backend().copy(context, tensor, host);
  return in_layout(host, Layout::plain);
}

struct Reordered {
  Tensor y, dx;  // plain
};

// y is `x` in another layout and type, dx is y in those of `x`.
Reordered reorder(const Backend& backend, const Tensor& x, Layout from, Layout to, DType type) {
  const Reorder op(to, x.dtype(), type);
  const Precision precision = type == DType::bf16 ? Precision::bf16 : Precision::float32;
  const KernelEntry& entry = backend.entry("reorder");
  const Lowering lowering = entry.lower(op, {&x.shape(), 1}, {&from, 1}, precision);
  EXPECT_EQ(lowering.precision, precision);
  EXPECT_EQ(lowering.y, to);
  Context context(backend);
  backend.enter(context);
  const Tensor in[] = {there(context, in_layout(x, from))}, dx[] = {backend.tensor(in[0].spec())};
  const Tensor y = backend.tensor({x.shape(), type, to});
  const auto kernel = entry.make(op, {&in[0].spec(), 1}, lowering);
  kernel->forward(context, {.x = in, .y = y});
  kernel->backward(context, {.dy = y, .dx = dx});
  return {here(context, y), here(context, dx[0])};
}

void expect_same_bytes(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.spec(), b.spec());
  EXPECT_EQ(std::memcmp(a.raw(), b.raw(), size_t(a.bytes())), 0);
}

template <class T>
constexpr DType dtype = std::is_same_v<T, Bf16> ? DType::bf16 : DType::f32;

template <class T, class U>
void SameBits::expect_reordered(const Shape& shape, Layout from, Layout to) const {
  const Tensor x = Tensor::host({shape, dtype<T>}), y = Tensor::host({shape, dtype<U>}),
               dx = Tensor::host({shape, dtype<T>});
  const std::vector<float> numbers = awkward(shape.elements());
  for (int64_t i = 0; i < shape.elements(); ++i) {
    x.data<T>()[i] = T(numbers[size_t(i)]);
    y.data<U>()[i] = U(float(x.data<T>()[i]));
    dx.data<T>()[i] = T(float(y.data<U>()[i]));
  }
  const Reordered ours = reorder(*engine_, x, from, to, dtype<U>);
  expect_same_bytes(ours.y, y);
  expect_same_bytes(ours.dx, dx);
  // The instruction that oneDNN rounds by (VCVTNEPS2BF16) takes subnormal numbers for zeros.
  if (!cpu::has_bf16()) return;  // its code for other processors loses the sign of −0
  for (int64_t i = 0; i < shape.elements(); ++i)
    if (std::fpclassify(numbers[size_t(i)]) == FP_SUBNORMAL) x.data<T>()[i] = T(0.0f);
  const Reordered normal = reorder(*engine_, x, from, to, dtype<U>);
  const auto blocked = [](Layout l) { return l == Layout::nhwc ? Layout::nChw16c : l; };
  const Reordered theirs = reorder(backend("cpu"), x, blocked(from), blocked(to), dtype<U>);
  expect_same_bytes(normal.y, theirs.y);
  expect_same_bytes(normal.dx, theirs.dx);
}

TEST_P(SameBits, OfReordersAndRoundings) {
  for (const Shape& shape : {Shape{3, 5, 7, 2}, Shape{2, 16, 4, 4}, Shape{1, 20, 1, 1}})
    for (const auto& [from, to] : {std::pair{Layout::plain, Layout::nhwc},
                                   {Layout::nhwc, Layout::plain},
                                   {Layout::nhwc, Layout::nhwc}}) {
      SCOPED_TRACE(shape.str() + " from " + std::string(name_of(from)) + " to " + std::string(name_of(to)));
      if (from != to) expect_reordered<float, float>(shape, from, to);
      if (from != to) expect_reordered<Bf16, Bf16>(shape, from, to);
      expect_reordered<float, Bf16>(shape, from, to);
      expect_reordered<Bf16, float>(shape, from, to);
    }
  expect_reordered<Bf16, float>({5, 17}, Layout::plain, Layout::plain);  // logits, before the loss
}

std::vector<Engine> not_the_cpu() {
  std::vector<Engine> all = engines();
  std::erase_if(all, [](const Engine& e) { return e.backend == "cpu"; });
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, SameBits, ::testing::ValuesIn(not_the_cpu()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace antichain::harness
