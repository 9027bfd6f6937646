#include "tests/layers/op_harness.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "framework/bf16.h"
#include "framework/computed.h"
#include "framework/random.h"
#include "layers/conv2d.h"
#include "layers/conv_transpose2d.h"
#include "layers/cpu/depthwise.h"
#include "layers/cpu/narrow_groups.h"
#include "layers/embedding.h"
#include "layers/linear.h"
#include "layers/softmax_cross_entropy.h"
#include "tests/layers/guarded.h"
#include "tests/layers/reference/reference.h"

namespace antichain::harness {
namespace {

std::optional<DType> label_type(const OpCase& c, size_t input) {
  if (!is_label(c, input)) return std::nullopt;
  return c.op->role() == Role::loss && c.x[input] == c.x[0] ? DType::f32 : DType::i32;
}

struct Bank {
  const Context* context;
  std::vector<Guarded> guarded = {};
  std::vector<Tensor> tensors = {};

  void add(std::string name, const TensorSpec& spec) {
    guarded.emplace_back(*context, std::move(name), spec);
    tensors.push_back(guarded.back().tensor());
  }
  void load(const std::vector<Numbers>& values) {
    for (size_t i = 0; i < values.size(); ++i) guarded[i].load(values[i]);
  }
  std::vector<Numbers> read() const {
    std::vector<Numbers> all;
    for (const Guarded& g : guarded) all.push_back(g.read());
    return all;
  }
};

// Returns distinct numbers in (−1, 1), none nearer to 0 than 0.5 / count: no maximum is a tie, and no ReLU is
// at its kink.
Numbers distinct(int64_t count, const Philox& random, uint64_t stream) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = count - 1; i > 0; --i)
    std::swap(order[size_t(i)], order[random.words(uint64_t(i), stream)[0] % uint64_t(i + 1)]);
  Numbers numbers;
  for (int64_t k : order) numbers.push_back(float((2.0 * double(k) + 0.5) / double(count) - 1.0));
  return numbers;
}

// Holds all the tensors of one node, for one backend.
class OpRun {
 public:
  OpRun(const Backend& backend, const OpCase& c, const Values& values, const Ask& ask)
      : case_(c),
        values_(values),
        ask_(ask),
        double_(backend.name() == "reference"),
        context_(backend, ask.threads),
        bank_{&context_} {
    backend.enter(context_);
    std::vector<Layout> offered;
    for (const Shape& shape : c.x) offered.push_back(shape.rank() == 4 ? ask.offered : Layout::plain);
    const KernelEntry& entry = backend.entry(c.op->type());
    signature_ = c.op->infer(c.x);
    lowering_ = entry.lower(*c.op, c.x, offered, ask.precision);
    std::vector<TensorSpec> x;
    for (size_t i = 0; i < c.x.size(); ++i)
      x.push_back(spec({c.x[i], label_type(c, i).value_or(storage(lowering_.precision))}, lowering_.x[i]));
    kernel_ = entry.make(*c.op, x, lowering_);
    allocate(x);
    load(values);
    kernel_->prepare(context_, params_.tensors, prepared_.tensors);
  }

  bool inseparable() const { return kernel_->inseparable(); }
  bool adds_dx() const { return lowering_.adds_dx; }
  bool adds_dy() const { return lowering_.adds_dy; }

  Results run() {
    Results results;
    results.evaluated = evaluate();
    if (ask_.in_place) x_.load(values_.x);
    forward(Mode::train);
    results.y = y().guarded[0].read();
    y().guarded[0].check_padding();
    backward();
    const Absorbed one_microbatch{kernel_.get(), {statistics_.tensors}, buffers_.tensors};
    const auto at_once = statistics_.tensors.empty()
                             ? nullptr
                             : context_.backend().make_absorption(context_, {one_microbatch});
    if (at_once)
      at_once->run(context_);
    else if (!statistics_.tensors.empty())
      kernel_->absorb(context_, one_microbatch.statistics, buffers_.tensors);
    for (const Bank* bank : {ask_.in_place ? &dy_ : &dx_, &dw_})
      for (size_t i = 0; i < bank->guarded.size(); ++i)
        if (bank->tensors[i]) bank->guarded[i].check_padding();
    for (const Bank* bank :
         {&x_, &params_, &prepared_, &buffers_, &statistics_, &stash_, &y_, &dy_, &dy_term_, &dx_, &dw_})
      for (const Guarded& g : bank->guarded) g.check_guards();
    results.statistics = statistics_.read();
    results.buffers = buffers_.read();
    results.dw = dw_.read();
    for (size_t i = 0; i < case_.x.size(); ++i)
      if (!is_label(case_, i)) results.dx.push_back((ask_.in_place ? dy_ : dx_).guarded[i].read());
    return results;
  }

 private:
  Bank& y() { return ask_.in_place && !lowering_.keeps_x ? x_ : y_; }

  TensorSpec spec(TensorSpec s, Layout layout) const {
    s.layout = layout;
    return double_ ? reference::in_double(s) : s;
  }

  void allocate(const std::vector<TensorSpec>& x) {
    for (size_t i = 0; i < x.size(); ++i) {
      x_.add(fmt::format("x[{}]", i), x[i]);
      dx_.add(fmt::format("dx[{}]", i),
              is_label(case_, i) ? TensorSpec{.shape = {1}, .dtype = DType::i32} : x[i]);
      if (is_label(case_, i)) dx_.tensors[i] = Tensor();  // labels have no gradient
    }
    for (size_t i = 0; i < signature_.params.size(); ++i) {
      const TensorSpec s = spec({signature_.params[i].shape}, lowering_.params[i]);
      params_.add(signature_.params[i].name, s);
      dw_.add("gradient of " + signature_.params[i].name, s);
    }
    for (const ParamSpec& b : signature_.buffers)
      buffers_.add(b.name, spec({b.shape, b.dtype}, Layout::plain));
    for (const TensorSpec& s : signature_.statistics) statistics_.add("statistics", spec(s, s.layout));
    for (const TensorSpec& s : lowering_.stash) stash_.add("stash", s);
    for (const TensorSpec& s : lowering_.prepared) prepared_.add("prepared parameters", spec(s, s.layout));
    const int all = int(dx_.tensors.size() + dw_.tensors.size());
    for (int i = 0; ask_.only >= 0 && i < all; ++i)
      if (i != ask_.only)
        (i < int(x.size()) ? dx_.tensors[size_t(i)] : dw_.tensors[size_t(i) - x.size()]) = {};
    TensorSpec y = signature_.y;
    if (case_.op->role() != Role::loss) y.dtype = storage(lowering_.precision);
    y_.add("y", spec(y, lowering_.y));
    dy_.add("dy", spec(y, lowering_.y));
    if (!ask_.dy_term.empty()) dy_term_.add("second term of dy", spec(y, lowering_.y));
  }

  void load(const Values& values) {
    x_.load(values.x);
    params_.load(values.params);
    buffers_.load(values.buffers);
    dy_.load({values.dy});
    if (!ask_.dy_term.empty()) dy_term_.load({ask_.dy_term});
    if (ask_.into == Into::accumulate)
      for (const Guarded& g : dw_.guarded)
        g.load(Numbers(size_t(g.tensor().shape().elements()), ask_.dw_before));
    if (ask_.dx_into == Into::accumulate)
      for (const Guarded& g : dx_.guarded)
        g.load(Numbers(size_t(g.tensor().shape().elements()), ask_.dx_before));
  }

  void forward(Mode mode) {
    Forward f{.x = x_.tensors,
              .params = params_.tensors,
              .prepared = prepared_.tensors,
              .buffers = buffers_.tensors};
    f.y = y().tensors[0];
    f.mode = mode;
    f.dropout = key_;
    if (mode == Mode::train) {
      f.stash = stash_.tensors;
      f.statistics = statistics_.tensors;
    }
    ask_.around([&] { kernel_->forward(context_, f); });
  }

  // Without stash and statistics: evaluation has none.
  Numbers evaluate() {
    forward(Mode::evaluate);
    Numbers numbers = y().guarded[0].read();
    y().guarded[0].check_padding();
    y().guarded[0].poison();
    return numbers;
  }

  void backward() {
    std::vector<Tensor> x = x_.tensors;
    for (size_t i = 0; i < x.size(); ++i)
      if (!lowering_.keeps(i)) x[i] = Tensor();
    Backward b{.x = x, .params = params_.tensors, .prepared = prepared_.tensors};
    if (lowering_.keeps_y) b.y = y().tensors[0];
    if (case_.op->role() != Role::loss) b.dy = dy_.tensors[0];
    if (!ask_.dy_term.empty()) b.dy_term = dy_term_.tensors[0];
    b.stash = stash_.tensors;
    b.statistics = statistics_.tensors;
    b.into = ask_.into;
    const std::vector<Into> dx_into(x.size(), ask_.dx_into);
    b.dx_into = dx_into;
    b.loss_scale = float(loss_scale_of(case_));
    b.dropout = key_;
    if (ask_.halves == Halves::together) {
      b.dx = (ask_.in_place ? dy_ : dx_).tensors;
      b.dw = dw_.tensors;
      return ask_.around([&] { kernel_->backward(context_, b); });
    }
    b.dx = dx_.tensors;
    kernel_->backward(context_, b);
    b.dx = {};
    b.dw = dw_.tensors;
    kernel_->backward(context_, b);
  }

  const OpCase& case_;
  const Values& values_;
  const Ask ask_;
  const bool double_;
  Context context_;
  Signature signature_;
  Lowering lowering_;
  std::unique_ptr<Kernel> kernel_;
  const Bank bank_;  // empty
  Bank x_{bank_}, params_{bank_}, prepared_{bank_}, buffers_{bank_}, statistics_{bank_}, stash_{bank_},
      y_{bank_}, dy_{bank_}, dy_term_{bank_}, dx_{bank_}, dw_{bank_};
  const DropoutKey key_{.seed = 7, .step = 3, .first_sample = 5};
};

// Returns documents of 1 to 50 positions, every fourth of them padding; positions in any order; or rows of a
// table, of which some occur often and some never, and −1, which is padding.
Numbers draw_integers(const OpCase& c, size_t input) {
  const Shape& shape = c.x[input];
  Numbers values;
  for (int64_t i = 0; i < shape.elements(); ++i) {
    if (const auto* embedding = dynamic_cast<const Embedding*>(c.op.get())) {
      values.push_back(double(i * i % 12 % (embedding->options.rows + 1)) - 1);
      continue;
    }
    const int64_t position = i % shape[1], sample = i / shape[1];
    if (c.op->type() == "rotary") {
      values.push_back(double((7 * position + 13 * sample) % (2 * shape[1])));
      continue;
    }
    int64_t document = 0;
    for (int64_t end = 1 + sample; end <= position; end += 1 + end % 50) ++document;
    values.push_back(document % 4 == 3 ? -1 : double(document));
  }
  return values;
}

// Returns classes: −1 (padding), 0, 1, … in turn, one for each position of a sample; or each class's share,
// zeros for the first sample (padding), for the others two classes that overlap in every fifth.
Numbers draw_labels(const OpCase& c, Numbers values) {
  const auto [samples, classes, positions] = static_cast<const SoftmaxCrossEntropy&>(*c.op).sizes(c.x[0]);
  if (c.x[1] != c.x[0]) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = double(int64_t(i) % (classes + 1)) - 1;
    return values;
  }
  std::ranges::fill(values, 0);
  for (int64_t n = 1; n < samples; ++n) {
    values[size_t(n * classes + n % classes)] += double(float(0.05 * double(n % 20)));
    values[size_t(n * classes + (n + n % 5) % classes)] += double(float(1 - 0.05 * double(n % 20)));
  }
  return values;
}

}  // namespace

bool is_label(const OpCase& c, size_t input) { return c.op->wants(input, c.x.size()) == Wants::integers; }

double loss_scale_of(const OpCase& c) { return c.op->role() == Role::loss ? double(0.3f) : 1.0; }

Values draw(const OpCase& c, uint64_t seed) {
  const Philox random(seed);
  const Signature signature = c.op->infer(c.x);
  uint64_t stream = 0;
  Values values;
  for (size_t i = 0; i < c.x.size(); ++i) {
    values.x.push_back(distinct(c.x[i].elements(), random, ++stream));
    for (double& v : values.x.back()) v = float(v * c.spread);
    if (is_label(c, i))
      values.x[i] = c.op->role() == Role::loss ? draw_labels(c, values.x[i]) : draw_integers(c, i);
  }
  for (const ParamSpec& p : signature.params)
    values.params.push_back(distinct(p.shape.elements(), random, ++stream));
  for (const ParamSpec& b : signature.buffers) {
    values.buffers.push_back(distinct(b.shape.elements(), random, ++stream));
    for (double& v : values.buffers.back()) v = b.dtype == DType::i32 ? 5 : float(v + 1.5);  // variances > 0
  }
  values.dy = distinct(signature.y.shape.elements(), random, ++stream);
  return values;
}

Values rounded_to_bf16(Values values) {
  const auto round = [](Numbers& numbers) {
    for (double& v : numbers) v = Bf16(float(v));
  };
  std::ranges::for_each(values.x, round);
  std::ranges::for_each(values.params, round);
  round(values.dy);
  return values;
}

Results run(const Backend& backend, const OpCase& c, const Values& values, const Ask& ask) {
  return OpRun(backend, c, values, ask).run();
}

bool inseparable(const Backend& backend, const OpCase& c) {
  return OpRun(backend, c, draw(c), {}).inseparable();
}

bool adds_dx(const Backend& backend, const OpCase& c) { return OpRun(backend, c, draw(c), {}).adds_dx(); }
bool adds_dy(const Backend& backend, const OpCase& c) { return OpRun(backend, c, draw(c), {}).adds_dy(); }

bool carries_out(const Backend& backend, const OpCase& c) {
  const KernelEntry& entry = backend.entry(c.op->type());
  return (!c.fused && !c.optional) || (entry.fuses && entry.fuses(*c.op));
}

bool by_onednn(const OpCase& c) {
  if (const auto* computed = dynamic_cast<const Computed*>(c.op.get())) {
    OpCase of = c;
    of.op = computed->options.of;
    return by_onednn(of);
  }
  const auto left_over = [](const Conv2d& conv, const Shape& x) {
    const Shape y = conv.infer({&x, 1}).y.shape;
    return !cpu::Depthwise::of(conv, x, y, Precision::bf16) &&
           !cpu::NarrowGroups::of(conv, x, y, Precision::bf16);
  };
  if (const auto* conv = dynamic_cast<const Conv2d*>(c.op.get())) return left_over(*conv, c.x[0]);
  if (const auto* transposed = dynamic_cast<const ConvTranspose2d*>(c.op.get()))
    return left_over(transposed->convolution(c.x[0]), c.op->infer(c.x).y.shape);
  return c.op->type() == "linear";
}

OpCase without_relu(OpCase c) {
  c.fused = false;
  if (const auto* conv = dynamic_cast<const Conv2d*>(c.op.get())) {
    Conv2dOptions options = conv->options;
    options.relu = false;
    c.op = std::make_shared<Conv2d>(options);
  } else {
    LinearOptions options = dynamic_cast<const Linear&>(*c.op).options;
    options.relu = false;
    c.op = std::make_shared<Linear>(options);
  }
  return c;
}

double objective(const OpCase& c, const Values& values, const Numbers& y) {
  if (c.op->role() != Role::loss) return std::inner_product(y.begin(), y.end(), values.dy.begin(), 0.0);
  double sum = 0;
  for (size_t i = 0; i < y.size(); i += 2) sum += y[i];
  return loss_scale_of(c) * sum;
}

double difference(const Numbers& a, const Numbers& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double largest = 0, worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::abs(b[i]));
    worst = std::max(worst, std::abs(a[i] - b[i]));
  }
  return worst == 0 ? 0 : worst / largest;
}

}  // namespace antichain::harness
