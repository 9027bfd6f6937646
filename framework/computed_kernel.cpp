// This file carries a computed operator out by the kernels of its steps and of the operator that it is of. It
// lays their tensors out in memory that the node has beside its parameters.
#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "framework/computed.h"
#include "framework/graph.h"
#include "framework/reorder.h"

namespace antichain {
namespace {

// Returns the shape of filters with four dimensions, as engines lay them out.
Shape as_filters(const Shape& s) {
  if (s.rank() == 2) return {s[0], s[1], 1, 1};
  if (s.rank() == 3) return {s[0], s[1], 1, s[2]};
  return s;
}

// Returns the bytes of a tensor as those of another spec. An engine that computes in double stays there.
Tensor as(const Tensor& memory, TensorSpec spec) {
  if (memory.dtype() == DType::f64 && spec.dtype == DType::f32) spec.dtype = DType::f64;
  return {spec, memory.storage()};
}

// StepTensors are what a call of the steps reads and writes. `memory` has the tensors that the node keeps for
// them.
struct StepTensors {
  std::span<const Tensor> memory, parameters, buffers, own_buffers, statistics;
};

// Computes one parameter, and its gradient back to the parameters that it is computed of.
class ParameterSteps {
 public:
  // `to` is the parameter as the operator's kernel wants it.
  ParameterSteps(const ComputedOptions& o, int result, const TensorSpec& to, const Backend& backend)
      : backend_(backend), graph_(lower(graph_of_steps(o, result), backend)) {
    for (NodeId id = 0; id < graph_.size(); ++id) add_node(o, id);
    result_ = graph_.size() - 1;
    if (values_.back().spec.layout != Layout::plain) reorder(Layout::plain, values_.back().spec);
    const TensorSpec plain{.shape = to.layout == Layout::plain ? to.shape : as_filters(to.shape)};
    if (to.layout != Layout::plain) reorder(to.layout, plain);
  }

  bool reads_buffers() const { return reads_buffers_; }
  size_t own_buffers() const { return own_buffers_; }
  size_t statistics() const { return statistics_; }
  int64_t workspace_bytes() const { return workspace_bytes_; }
  const std::vector<TensorSpec>& memory() const { return memory_; }

  Tensor result(std::span<const Tensor> memory, const TensorSpec& to) const {
    return as(memory[size_t(values_[size_t(result_)].at)], to);
  }
  Tensor gradient(std::span<const Tensor> memory, const TensorSpec& to) const {
    return as(memory[size_t(values_[size_t(result_)].gradient_at)], to);
  }

  void forward(Context& context, const StepTensors& t, Mode mode) const {
    for (const Step& step : steps_) {
      const std::vector<Tensor> prepared = prepared_of(step, t);
      if (!prepared.empty()) step.kernel->prepare(context, {}, prepared);
      std::vector<Tensor> x;
      for (size_t i = 0; i < step.inputs.size(); ++i) x.push_back(value(t, step.inputs[i], step.x[i]));
      const std::vector<Tensor> stash = stash_of(step, t);
      step.kernel->forward(context, {.x = x,
                                     .prepared = prepared,
                                     .buffers = t.own_buffers.subspan(step.first_buffer, step.buffers),
                                     .y = value(t, step.y, step.y_spec),
                                     .stash = stash,
                                     .statistics = statistics_of(step, t.statistics),
                                     .mode = mode});
    }
  }

  // Adds to the gradients of the parameters, or overwrites those that `begun` does not name; it names all
  // that were written then.
  void backward(Context& context, const StepTensors& t, std::span<const Tensor> gradients,
                std::vector<bool>& begun) const {
    std::vector<bool> has(values_.size());
    has[size_t(result_)] = true;
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step)
      if (has[size_t(step->y)]) go_back(context, *step, t, gradients, begun, has);
  }

  void absorb(Context& context, std::span<const std::vector<Tensor>> statistics, size_t first,
              std::span<const Tensor> own_buffers) const {
    for (const Step& step : steps_) {
      if (step.statistics == 0) continue;
      std::vector<std::vector<Tensor>> of_step;
      for (const std::vector<Tensor>& all : statistics) {
        const auto begin = all.begin() + std::ptrdiff_t(first + step.first_statistic);
        of_step.emplace_back(begin, begin + std::ptrdiff_t(step.statistics));
      }
      step.kernel->absorb(context, of_step, own_buffers.subspan(step.first_buffer, step.buffers));
    }
  }

 private:
  // A value is a parameter or a buffer of the node, or has a place in its memory.
  struct Value {
    TensorSpec spec;
    int parameter = -1, buffer = -1;
    int at = -1, gradient_at = -1;
    bool needs_gradient = false;
  };
  struct Step {
    std::unique_ptr<Kernel> kernel;
    Lowering lowering;
    std::vector<int> inputs;
    std::vector<TensorSpec> x;
    int y;
    TensorSpec y_spec;
    std::vector<int> terms_at;  // by input: where a term of its gradient lies that the kernel can't add
    int stash_at = 0, prepared_at = 0;
    size_t first_buffer = 0, buffers = 0, first_statistic = 0, statistics = 0;
  };

  int place(const TensorSpec& spec) {
    memory_.push_back(spec);
    return int(memory_.size()) - 1;
  }

  void add_node(const ComputedOptions& o, NodeId id) {
    const Node& node = graph_[id];
    if (node.role() == Role::input) {
      const auto index = [&](const std::vector<ParamSpec>& specs, const std::string& name) {
        const auto found = std::ranges::find(specs, name, &ParamSpec::name);
        return found == specs.end() ? -1 : int(found - specs.begin());
      };
      Value leaf{.spec = node.output(), .parameter = index(o.parameters, node.name)};
      leaf.needs_gradient = leaf.parameter >= 0;
      if (leaf.parameter < 0) {
        leaf.buffer = index(o.buffers, node.name.substr(std::string_view("buffer ").size()));
        reads_buffers_ = true;
      }
      values_.push_back(leaf);
      return;
    }
    std::vector<TensorSpec> x;
    for (const NodeId input : node.inputs) x.push_back(graph_[input].output());
    Step& step = add_step(*node.op, node.lowering, node.inputs, std::move(x), node.output());
    step.buffers = node.signature.buffers.size();
    step.statistics = node.signature.statistics.size();
    step.first_buffer = std::exchange(own_buffers_, own_buffers_ + step.buffers);
    step.first_statistic = std::exchange(statistics_, statistics_ + step.statistics);
    reads_buffers_ = reads_buffers_ || step.buffers > 0;
  }

  Step& add_step(const Op& op, const Lowering& lowering, std::vector<int> inputs, std::vector<TensorSpec> x,
                 const TensorSpec& y) {
    Value value{.spec = y, .at = place(y)};
    Step step{.kernel = backend_.entry(op.type()).make(op, x, lowering),
              .lowering = lowering,
              .inputs = std::move(inputs),
              .x = std::move(x),
              .y = int(values_.size()),
              .y_spec = y};
    for (const int input : step.inputs)
      value.needs_gradient = value.needs_gradient || values_[size_t(input)].needs_gradient;
    if (value.needs_gradient) value.gradient_at = place(y);
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const auto before = step.inputs.begin() + std::ptrdiff_t(i);
      const bool twice = std::find(step.inputs.begin(), before, step.inputs[i]) != before;
      const bool has_term = values_[size_t(step.inputs[i])].needs_gradient && (twice || !lowering.adds_dx);
      step.terms_at.push_back(has_term ? place(step.x[i]) : -1);
    }
    step.stash_at = int(memory_.size());
    for (const TensorSpec& spec : lowering.stash) place(spec);
    step.prepared_at = int(memory_.size());
    for (const TensorSpec& spec : lowering.prepared) place(spec);
    workspace_bytes_ = std::max(workspace_bytes_, lowering.workspace_bytes);
    values_.push_back(value);
    steps_.push_back(std::move(step));
    return steps_.back();
  }

  // Brings the last value, whose numbers lie as those of x, into another layout.
  void reorder(Layout to, const TensorSpec& x) {
    const Reorder op(to);
    const Lowering lowering =
        backend_.entry(op.type()).lower(op, {&x.shape, 1}, {&x.layout, 1}, Precision::float32);
    add_step(op, lowering, {result_}, {x}, {.shape = x.shape, .layout = to});
    result_ = int(values_.size()) - 1;
  }

  Tensor value(const StepTensors& t, int value, const TensorSpec& spec) const {
    const Value& v = values_[size_t(value)];
    if (v.parameter >= 0) return as(t.parameters[size_t(v.parameter)], spec);
    if (v.buffer >= 0) return t.buffers.empty() ? Tensor() : as(t.buffers[size_t(v.buffer)], spec);
    return as(t.memory[size_t(v.at)], spec);
  }

  static std::vector<Tensor> tensors_at(int first, const std::vector<TensorSpec>& specs,
                                        const StepTensors& t) {
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < specs.size(); ++i) tensors.push_back(as(t.memory[size_t(first) + i], specs[i]));
    return tensors;
  }
  static std::vector<Tensor> stash_of(const Step& step, const StepTensors& t) {
    return tensors_at(step.stash_at, step.lowering.stash, t);
  }
  static std::vector<Tensor> prepared_of(const Step& step, const StepTensors& t) {
    return tensors_at(step.prepared_at, step.lowering.prepared, t);
  }

  static std::span<const Tensor> statistics_of(const Step& step, std::span<const Tensor> all) {
    return all.empty() ? all : all.subspan(step.first_statistic, step.statistics);
  }

  void go_back(Context& context, const Step& step, const StepTensors& t, std::span<const Tensor> gradients,
               std::vector<bool>& begun, std::vector<bool>& has) const {
    std::vector<Tensor> x(step.inputs.size()), dx(step.inputs.size()), terms(step.inputs.size());
    std::vector<Into> into(step.inputs.size(), Into::overwrite);
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const int input = step.inputs[i];
      const Value& v = values_[size_t(input)];
      if (step.lowering.keeps(i)) x[i] = value(t, input, step.x[i]);
      if (!v.needs_gradient || (v.parameter >= 0 && !gradients[size_t(v.parameter)])) continue;
      const bool of_parameter = v.parameter >= 0;
      const Tensor& memory = of_parameter ? gradients[size_t(v.parameter)] : t.memory[size_t(v.gradient_at)];
      std::vector<bool>::reference begins = of_parameter ? begun[size_t(v.parameter)] : has[size_t(input)];
      dx[i] = as(memory, step.x[i]);
      if (begins && step.terms_at[i] >= 0) {
        terms[i] = dx[i];
        dx[i] = as(t.memory[size_t(step.terms_at[i])], step.x[i]);
      } else if (begins) {
        into[i] = Into::accumulate;
      }
      begins = true;
    }
    if (std::ranges::none_of(dx, [](const Tensor& tensor) { return bool(tensor); })) return;
    const std::vector<Tensor> stash = stash_of(step, t), prepared = prepared_of(step, t);
    Backward b{.x = x,
               .prepared = prepared,
               .dy = as(t.memory[size_t(values_[size_t(step.y)].gradient_at)], step.y_spec),
               .stash = stash,
               .statistics = statistics_of(step, t.statistics),
               .dx = dx,
               .dx_into = into};
    if (step.lowering.keeps_y) b.y = value(t, step.y, step.y_spec);
    step.kernel->backward(context, b);
    for (size_t i = 0; i < terms.size(); ++i)
      if (terms[i]) backend_.add(context, dx[i], terms[i]);
  }

  const Backend& backend_;
  const Graph graph_;
  std::vector<Value> values_;
  std::vector<Step> steps_;
  std::vector<TensorSpec> memory_;
  int result_ = 0;
  bool reads_buffers_ = false;
  size_t own_buffers_ = 0, statistics_ = 0;
  int64_t workspace_bytes_ = 0;
};

// The memory of the steps is `prepared`: what the kernel of `of` has there, then that of each computed
// parameter, then room for the gradients of those that are not computed.
class ComputedKernel : public Kernel {
 public:
  ComputedKernel(const Computed& op, std::span<const Shape> x, std::span<const Layout> offered,
                 Precision precision, const Backend& backend)
      : backend_(backend), options_(op.options), of_(op.options.of->infer(x)) {
    const KernelEntry& entry = backend.entry(options_.of->type());
    lowering_ = entry.lower(*options_.of, x, offered, precision);
    inner_prepared_ = lowering_.prepared.size();
    for (size_t i = 0; i < of_.params.size(); ++i) {
      specs_.push_back({of_.params[i].shape, of_.params[i].dtype, lowering_.params[i]});
      const auto value =
          std::ranges::find(options_.values, of_.params[i].name, &ComputedOptions::Value::parameter);
      if (value == options_.values.end()) {
        steps_.push_back(nullptr);
        continue;
      }
      steps_.push_back(std::make_unique<ParameterSteps>(options_, value->step, specs_[i], backend));
      reads_buffers_ = reads_buffers_ || steps_.back()->reads_buffers();
    }
    whole_ = lowering_;
    whole_.params.clear();
    whole_.prepared_rounded = false;
    for (size_t i = 0; i < steps_.size(); ++i) {
      memory_at_.push_back(whole_.prepared.size());
      if (!steps_[i]) {
        whole_.params.push_back(specs_[i].layout);
        whole_.prepared.push_back(specs_[i]);
        continue;
      }
      const std::vector<TensorSpec>& memory = steps_[i]->memory();
      whole_.prepared.insert(whole_.prepared.end(), memory.begin(), memory.end());
      whole_.workspace_bytes = std::max(whole_.workspace_bytes, steps_[i]->workspace_bytes());
    }
    kept_ = whole_.params.size();
    whole_.params.resize(kept_ + options_.parameters.size(), Layout::plain);
  }

  void make(std::span<const TensorSpec> x) {
    kernel_ = backend_.entry(options_.of->type()).make(*options_.of, x, lowering_);
  }

  const Lowering& lowering() const { return whole_; }

  void prepare(Context& context, std::span<const Tensor> params,
               std::span<const Tensor> prepared) const override {
    if (!reads_buffers_) compute(context, params, prepared, {}, {}, Mode::train);
  }

  void forward(Context& context, const Forward& f) const override {
    if (reads_buffers_) compute(context, f.params, f.prepared, f.buffers, f.statistics, f.mode);
    const std::vector<Tensor> params = inner(f.params, f.prepared);
    Forward of = f;
    of.params = params;
    of.prepared = f.prepared.first(inner_prepared_);
    of.buffers = f.buffers.first(of_.buffers.size());
    if (!f.statistics.empty()) of.statistics = f.statistics.first(of_.statistics.size());
    kernel_->forward(context, of);
  }

  void backward(Context& context, const Backward& b) const override {
    const std::vector<Tensor> params = inner(b.params, b.prepared);
    std::vector<Tensor> dw;
    Backward of = b;
    of.params = params;
    of.prepared = b.prepared.first(inner_prepared_);
    if (!b.statistics.empty()) of.statistics = b.statistics.first(of_.statistics.size());
    of.into = Into::overwrite;
    const bool adds = b.into == Into::accumulate;
    if (!b.dw.empty()) {
      size_t kept = 0;
      for (size_t i = 0; i < steps_.size(); ++i) {
        if (steps_[i])
          dw.push_back(steps_[i]->gradient(memory_of(i, b.prepared), specs_[i]));
        else if (const Tensor& own = b.dw[kept++]; own && adds)
          dw.push_back(as(b.prepared[memory_at_[i]], specs_[i]));
        else
          dw.push_back(own);
      }
      of.dw = dw;
    }
    kernel_->backward(context, of);
    if (b.dw.empty()) return;
    size_t kept = 0;
    for (size_t i = 0; i < steps_.size(); ++i)
      if (!steps_[i])
        if (const Tensor& own = b.dw[kept++]; own && adds) backend_.add(context, dw[i], own);
    std::vector<bool> begun(options_.parameters.size(), adds);
    for (size_t i = 0; i < steps_.size(); ++i)
      if (steps_[i])
        steps_[i]->backward(context,
                            {.memory = memory_of(i, b.prepared),
                             .parameters = b.params.subspan(kept_),
                             .buffers = {},
                             .own_buffers = {},
                             .statistics = statistics_of(i, b.statistics)},
                            b.dw.subspan(kept_), begun);
  }

  void absorb(Context& context, std::span<const std::vector<Tensor>> statistics,
              std::span<const Tensor> buffers) const override {
    std::vector<std::vector<Tensor>> of;
    for (const std::vector<Tensor>& all : statistics)
      of.emplace_back(all.begin(), all.begin() + std::ptrdiff_t(of_.statistics.size()));
    if (!of_.statistics.empty()) kernel_->absorb(context, of, buffers.first(of_.buffers.size()));
    for (size_t i = 0; i < steps_.size(); ++i)
      if (steps_[i]) steps_[i]->absorb(context, statistics, first_statistic(i), own_buffers_of(i, buffers));
  }

  std::optional<RunningAverages> running_averages() const override {
    return reads_buffers_ ? std::nullopt : kernel_->running_averages();
  }
  bool inseparable() const override { return kernel_->inseparable(); }

 private:
  void compute(Context& context, std::span<const Tensor> params, std::span<const Tensor> prepared,
               std::span<const Tensor> buffers, std::span<const Tensor> statistics, Mode mode) const {
    for (size_t i = 0; i < steps_.size(); ++i)
      if (steps_[i])
        steps_[i]->forward(
            context,
            {.memory = memory_of(i, prepared),
             .parameters = params.subspan(kept_),
             .buffers =
                 buffers.empty() ? buffers : buffers.subspan(of_.buffers.size(), options_.buffers.size()),
             .own_buffers = own_buffers_of(i, buffers),
             .statistics = statistics_of(i, statistics)},
            mode);
    if (inner_prepared_ > 0)
      kernel_->prepare(context, inner(params, prepared), prepared.first(inner_prepared_));
  }

  // Returns the parameters as the kernel of `of` takes them.
  std::vector<Tensor> inner(std::span<const Tensor> params, std::span<const Tensor> prepared) const {
    std::vector<Tensor> all;
    size_t kept = 0;
    for (size_t i = 0; i < steps_.size(); ++i)
      all.push_back(steps_[i] ? steps_[i]->result(memory_of(i, prepared), specs_[i]) : params[kept++]);
    return all;
  }

  std::span<const Tensor> memory_of(size_t param, std::span<const Tensor> prepared) const {
    return prepared.subspan(memory_at_[param], steps_[param]->memory().size());
  }
  std::span<const Tensor> own_buffers_of(size_t param, std::span<const Tensor> buffers) const {
    size_t first = of_.buffers.size() + options_.buffers.size();
    for (size_t i = 0; i < param; ++i) first += steps_[i] ? steps_[i]->own_buffers() : 0;
    return buffers.empty() ? buffers : buffers.subspan(first, steps_[param]->own_buffers());
  }
  size_t first_statistic(size_t param) const {
    size_t first = of_.statistics.size();
    for (size_t i = 0; i < param; ++i) first += steps_[i] ? steps_[i]->statistics() : 0;
    return first;
  }
  std::span<const Tensor> statistics_of(size_t param, std::span<const Tensor> all) const {
    return all.empty() ? all : all.subspan(first_statistic(param), steps_[param]->statistics());
  }

  const Backend& backend_;
  const ComputedOptions options_;
  const Signature of_;
  Lowering lowering_, whole_;                           // of `of`, and of the node
  std::vector<TensorSpec> specs_;                       // of the parameters of `of`
  std::vector<std::unique_ptr<ParameterSteps>> steps_;  // likewise; nullptr: not computed
  std::vector<size_t> memory_at_;                       // likewise
  size_t inner_prepared_ = 0, kept_ = 0;                // kept_: parameters that are not computed
  bool reads_buffers_ = false;
  std::unique_ptr<Kernel> kernel_;
};

}  // namespace

KernelEntry computed_entry(const Backend& backend) {
  return {.lower =
              [&backend](const Op& op, std::span<const Shape> x, std::span<const Layout> offered,
                         Precision precision) {
                return ComputedKernel(static_cast<const Computed&>(op), x, offered, precision, backend)
                    .lowering();
              },
          .make = [&backend](const Op& op, std::span<const TensorSpec> x,
                             const Lowering& lowering) -> std::unique_ptr<Kernel> {
            std::vector<Shape> shapes;
            for (const TensorSpec& spec : x) shapes.push_back(spec.shape);
            auto kernel = std::make_unique<ComputedKernel>(static_cast<const Computed&>(op), shapes,
                                                           lowering.x, lowering.precision, backend);
            kernel->make(x);
            return kernel;
          }};
}

}  // namespace antichain
