#include "tests/models/graph_run.h"

#include <algorithm>
#include <numeric>

#include "framework/backend.h"
#include "framework/loss_mean.h"
#include "tests/layers/reference/reference.h"

namespace antichain {
namespace {

// Returns the tensor where a backend's kernels see it.
Tensor there(const Context& context, const Tensor& host) {
  if (context.backend().host_memory()) return host;
  const Tensor tensor = context.backend().tensor(host.spec());
  context.backend().copy(context, host, tensor);
  return tensor;
}

Tensor here(const Context& context, const Tensor& tensor) {
  if (context.backend().host_memory()) return tensor;
  const Tensor host = Tensor::host(tensor.spec());
  context.backend().copy(context, tensor, host);
  return host;
}

// Returns host values in plain layout as a tensor of a backend.
Tensor to_backend(const Context& context, const Tensor& plain, Layout layout, bool in_double) {
  TensorSpec spec = plain.spec();
  spec.layout = layout;
  if (in_double) spec = reference::in_double(spec);
  const Tensor tensor = Tensor::host(spec);
  if (spec.dtype == plain.dtype())
    relayout(plain, tensor);
  else
    std::copy_n(plain.data<float>(), plain.elements(), tensor.data<double>());
  return there(context, tensor);
}

std::vector<double> numbers(const Context& context, const Tensor& of_backend) {
  const Tensor tensor = here(context, of_backend);
  TensorSpec spec = tensor.spec();
  spec.layout = Layout::plain;
  const Tensor plain = Tensor::host(spec);
  relayout(tensor, plain);
  std::vector<double> values(size_t(plain.elements()));
  if (spec.dtype == DType::f64)
    std::copy_n(plain.data<double>(), values.size(), values.begin());
  else
    std::copy_n(plain.data<float>(), values.size(), values.begin());
  return values;
}

class GraphRun {
 public:
  GraphRun(const Graph& graph, const Backend& backend, const Start& start,
           Precision precision = Precision::float32)
      : graph_(lower(graph, backend, precision)),
        backend_(backend),
        context_(backend),
        in_double_(backend.name() == "reference"),
        nodes_(size_t(graph_.size())) {
    backend.enter(context_);
    for (NodeId id = 0; id < graph_.size(); ++id) allocate(id, start);
  }

  GraphResults run() && {
    forward();
    backward();
    const Memory& loss = nodes_[size_t(graph_.find("loss"))];
    return {.logits = numbers(context_, loss.x[0]), .losses = losses(), .gradients = by_name(&Memory::dw)};
  }

  GraphTraining train(const std::shared_ptr<const Optimiser>& optimiser, float rate, int steps) && {
    GraphTraining result;
    const std::unique_ptr<Update> trained = make_update(optimiser);
    for (int step = 0; step <= steps; ++step) {
      forward();
      const std::vector<double> all = losses();
      result.losses.push_back(std::accumulate(all.begin(), all.end(), 0.0) / double(all.size()));
      if (step == steps) break;
      backward();
      update(*trained, rate);
    }
    result.weights = by_name(&Memory::params);
    return result;
  }

 private:
  struct Memory {
    std::unique_ptr<Kernel> kernel;
    Tensor y, dy;
    std::vector<Tensor> x, params, prepared, buffers, dw, stash, statistics;
  };

  void forward() {
    for (NodeId id = 0; id < graph_.size(); ++id) forward(id);
  }
  void backward() {
    for (NodeId id = graph_.size() - 1; id >= 0; --id) backward(id);
  }

  std::unique_ptr<Update> make_update(const std::shared_ptr<const Optimiser>& optimiser) const {
    std::vector<Trained> all;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Memory& m = nodes_[size_t(id)];
      for (size_t i = 0; i < m.params.size(); ++i) {
        all.push_back({m.params[i], m.dw[i], {}, {}});
        for (size_t n = optimiser->slots(graph_[id].signature.params[i]).size(); n > 0; --n)
          all.back().slots.push_back(backend_.tensor(m.params[i].spec()));
      }
    }
    return backend_.make_update(optimiser, context_, std::move(all));
  }
  void update(const Update& update, float rate) {
    update.run(context_, rate);
    for (Memory& m : nodes_) prepare(m);
  }

  std::vector<double> losses() const {
    const std::vector<double> pairs = numbers(context_, nodes_[size_t(graph_.find("loss"))].y);
    std::vector<double> values;
    for (size_t i = 0; i < pairs.size(); i += 2) values.push_back(pairs[i]);
    return values;
  }

  std::map<std::string, std::vector<double>> by_name(std::vector<Tensor> Memory::*tensors) const {
    std::map<std::string, std::vector<double>> values;
    for (NodeId id = 0; id < graph_.size(); ++id)
      for (size_t i = 0; i < (nodes_[size_t(id)].*tensors).size(); ++i)
        add_up(numbers(context_, (nodes_[size_t(id)].*tensors)[i]),
               values[graph_.file_name(graph_[id], graph_[id].signature.params[i])]);
    return values;
  }

  // A parameter that several nodes have gets the sum of its gradients.
  static void add_up(const std::vector<double>& more, std::vector<double>& sum) {
    sum.resize(more.size());
    for (size_t i = 0; i < more.size(); ++i) sum[i] += more[i];
  }

  Tensor tensor(TensorSpec spec) const {
    return backend_.tensor(in_double_ ? reference::in_double(spec) : spec);
  }

  Tensor input(const Node& node, const Start& start) const {
    const Tensor plain = Tensor::host(node.signature.y);
    for (int64_t i = 0; plain.dtype() == DType::i32 && i < plain.elements(); ++i)
      plain.data<int32_t>()[i] = int32_t(i);
    start(plain, node.name);
    return to_backend(context_, plain, Layout::plain, in_double_);
  }

  void allocate(NodeId id, const Start& start) {
    const Node& node = graph_[id];
    Memory& m = nodes_[size_t(id)];
    if (node.role() == Role::input) {
      m.y = input(node, start);
      return;
    }
    std::vector<TensorSpec> x;
    for (NodeId from : node.inputs) {
      m.x.push_back(nodes_[size_t(from)].y);
      x.push_back(m.x.back().spec());
    }
    m.kernel = backend_.entry(node.op->type()).make(*node.op, x, node.lowering);
    m.y = tensor(node.output());
    for (size_t i = 0; i < node.signature.params.size(); ++i) {
      const ParamSpec& p = node.signature.params[i];
      if (const Tensor shared = known(full_name(node, p))) {
        m.params.push_back(shared);
      } else {
        const Tensor plain = Tensor::host({.shape = p.shape});
        start(plain, graph_.file_name(node, p));
        m.params.push_back(to_backend(context_, plain, node.lowering.params[i], in_double_));
        known_[full_name(node, p)] = m.params.back();
      }
      m.dw.push_back(backend_.tensor(m.params.back().spec()));
    }
    for (const ParamSpec& b : node.signature.buffers) m.buffers.push_back(tensor({b.shape, b.dtype}));
    for (const TensorSpec& s : node.signature.statistics) m.statistics.push_back(tensor(s));
    for (const TensorSpec& s : node.lowering.stash) m.stash.push_back(backend_.tensor(s));
    for (const TensorSpec& s : node.lowering.prepared) m.prepared.push_back(tensor(s));
    prepare(m);
  }

  // Returns a parameter that an earlier node has, or nothing.
  Tensor known(const std::string& full_name) const {
    const auto found = known_.find(full_name);
    return found == known_.end() ? Tensor() : found->second;
  }

  // Returns what a loss's sums are multiplied by.
  double loss_scale(const Node& node, const Memory& m) const {
    const auto* mean = dynamic_cast<const LossMean*>(node.op.get());
    double divisor = graph_.microbatch();
    if (mean && mean->divisor() == LossDivisor::counts) {
      std::vector<Tensor> x;
      for (size_t i = 0; i < m.x.size(); ++i)
        x.push_back(graph_[node.inputs[i]].role() == Role::input ? here(context_, m.x[i]) : Tensor());
      divisor = mean->count(x).divisor;
    }
    return node.signature.loss_weight / divisor;
  }

  void prepare(Memory& m) {
    if (!m.prepared.empty()) m.kernel->prepare(context_, m.params, m.prepared);
  }

  void forward(NodeId id) {
    Memory& m = nodes_[size_t(id)];
    if (!m.kernel) return;
    Forward f{.x = m.x, .params = m.params, .prepared = m.prepared, .buffers = m.buffers, .y = m.y};
    f.stash = m.stash;
    f.statistics = m.statistics;
    m.kernel->forward(context_, f);
  }

  void backward(NodeId id) {
    const Node& node = graph_[id];
    Memory& m = nodes_[size_t(id)];
    if (!m.kernel) return;
    std::vector<Tensor> dx;
    for (size_t i = 0; i < m.x.size(); ++i)
      dx.push_back(graph_.needs_gradient(node.inputs[i]) ? backend_.tensor(m.x[i].spec()) : Tensor());
    std::vector<Tensor> x = m.x;
    for (size_t i = 0; i < x.size(); ++i)
      if (!node.lowering.keeps(i)) x[i] = Tensor();
    Backward b{.x = x, .params = m.params, .prepared = m.prepared};
    if (node.lowering.keeps_y) b.y = m.y;
    b.dy = m.dy;
    b.stash = m.stash;
    b.statistics = m.statistics;
    b.dx = dx;
    b.dw = m.dw;
    b.into = Into::overwrite;
    if (node.role() == Role::loss) b.loss_scale = float(loss_scale(node, m));
    m.kernel->backward(context_, b);
    for (size_t i = 0; i < dx.size(); ++i)
      if (dx[i]) fold(dx[i], nodes_[size_t(node.inputs[i])].dy);
    m.dy = Tensor();
  }

  // A tensor's gradient is the sum over its consumers, in descending node order.
  void fold(const Tensor& gradient, Tensor& sum) {
    if (sum)
      backend_.add(context_, gradient, sum);
    else
      sum = gradient;
  }

  const Graph graph_;
  const Backend& backend_;
  Context context_;
  const bool in_double_;
  std::vector<Memory> nodes_;
  std::map<std::string, Tensor> known_;  // parameters by their full names
};

}  // namespace

GraphResults run_graph(const Graph& graph, const Backend& backend, const Start& start, Precision precision) {
  return GraphRun(graph, backend, start, precision).run();
}

GraphTraining train_graph(const Graph& graph, const Backend& backend, const Start& start,
                          const std::shared_ptr<const Optimiser>& optimiser, float rate, int steps) {
  return GraphRun(graph, backend, start).train(optimiser, rate, steps);
}

}  // namespace antichain
