#include "layers/activate.h"

#include <array>

#include "layers/check_inputs.h"

namespace antichain {
namespace {

struct Facts {
  std::string_view name;
  double flops;
  bool from_y, keeps_zero;
};

constexpr std::array<Facts, 7> facts{{{"gelu", 5, false, true},
                                      {"gelu_tanh", 9, false, true},
                                      {"hardsigmoid", 4, false, false},
                                      {"hardswish", 5, false, true},
                                      {"relu6", 2, true, true},
                                      {"sigmoid", 4, true, false},
                                      {"silu", 5, false, true}}};

const Facts& of(ActivationFunction f) { return facts[size_t(f)]; }

NodeId activate(Graph& graph, std::string name, NodeId x, ActivationFunction function) {
  return graph.add(std::move(name), std::make_shared<Activate>(function), {x});
}

}  // namespace

std::string_view name_of(ActivationFunction f) { return of(f).name; }
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
