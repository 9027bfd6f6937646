#include "layers/activate.h"

#include <array>

#include "layers/check_inputs.h"

namespace antichain {
namespace {

struct Facts {
  double flops;
  bool from_y, keeps_zero;
};

// In the order of activation_names.
constexpr std::array<Facts, activation_names.size()> facts{{{5, false, true},
                                                            {9, false, true},
                                                            {4, false, false},
                                                            {5, false, true},
                                                            {2, true, true},
                                                            {4, true, false},
                                                            {5, false, true}}};

const Facts& of(ActivationFunction f) { return facts[size_t(f)]; }

NodeId activate(Graph& graph, std::string name, NodeId x, ActivationFunction function) {
  return graph.add(std::move(name), std::make_shared<Activate>(function), {x});
}

}  // namespace

double flops_of(ActivationFunction f) { return of(f).flops; }
bool derives_from_y(ActivationFunction f) { return of(f).from_y; }
bool keeps_zero(ActivationFunction f) { return of(f).keeps_zero; }

Signature Activate::infer(std::span<const Shape> x) const {
  check_inputs(name_of(function), x, 1, 0);
  Signature s;
  s.y = {.shape = x[0]};
  s.forward_flops = flops_of(function) * double(x[0].elements());
  return s;
}

NodeId gelu(Graph& graph, std::string name, NodeId x, Gelu form) {
  return activate(graph, std::move(name), x,
                  form == Gelu::erf ? ActivationFunction::gelu : ActivationFunction::gelu_tanh);
}
NodeId hardsigmoid(Graph& graph, std::string name, NodeId x) {
  return activate(graph, std::move(name), x, ActivationFunction::hardsigmoid);
}
NodeId hardswish(Graph& graph, std::string name, NodeId x) {
  return activate(graph, std::move(name), x, ActivationFunction::hardswish);
}
NodeId relu6(Graph& graph, std::string name, NodeId x) {
  return activate(graph, std::move(name), x, ActivationFunction::relu6);
}
NodeId sigmoid(Graph& graph, std::string name, NodeId x) {
  return activate(graph, std::move(name), x, ActivationFunction::sigmoid);
}
NodeId silu(Graph& graph, std::string name, NodeId x) {
  return activate(graph, std::move(name), x, ActivationFunction::silu);
}

}  // namespace antichain
