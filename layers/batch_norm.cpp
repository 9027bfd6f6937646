#include "layers/batch_norm.h"

#include <fmt/format.h>

#include "framework/error.h"
#include "layers/check_inputs.h"

namespace antichain {

BatchNorm::BatchNorm(BatchNormOptions o) : options(o) {
  if (!(o.eps > 0) || !(o.momentum >= 0 && o.momentum <= 1))
    throw Error(fmt::format("{} wants eps > 0 and a momentum between 0 and 1", str()));
}

std::string BatchNorm::str() const {
  std::string fused = options.add ? ", add" : "";
  if (options.relu) fused += ", relu";
  if (options.activation) fused += ", " + std::string(name_of(*options.activation));
  if (options.fixed_statistics) fused += ", fixed statistics";
  return fmt::format("batch_norm(eps {}, momentum {}{}{})", options.eps, options.momentum,
                     options.affine ? "" : ", not affine", fused);
}

std::shared_ptr<const Op> BatchNorm::then(const Op& next, int /*input*/) const {
  BatchNormOptions fused = options;
  if (options.relu || options.activation) return nullptr;
  if (next.type() == "relu")
    fused.relu = true;
  else if (next.type() == "add" && !options.add)
    fused.add = true;
  else if (next.type() == "activate" && !options.add)
    fused.activation = dynamic_cast<const Activate&>(next).function;
  else
    return nullptr;
  return std::make_shared<BatchNorm>(fused);
}

Signature BatchNorm::infer(std::span<const Shape> x) const {
  check_inputs("batch_norm", x, options.add ? 2 : 1, 4);
  if (options.add && x[0] != x[1])
    throw Error(
        fmt::format("{} wants two tensors of one shape, not {} and {}", str(), x[0].str(), x[1].str()));
  const Shape channels{x[0][1]};
  if (x[0].elements() == x[0][1] && !options.fixed_statistics)
    throw Error(fmt::format("batch_norm needs more than one value per channel, not {}", x[0].str()),
                "use a larger micro-batch");
  Signature s;
  s.y = {.shape = x[0]};
  if (options.affine)
    s.params = {{"weight", channels, Initialiser::constant(options.first_weight)},
                {"bias", channels, Initialiser::constant(0)}};
  s.buffers = {{"running_mean", channels, Initialiser::constant(0)},
               {"running_var", channels, Initialiser::constant(1)},
               {"num_batches_tracked", {1}, Initialiser::constant(0), DType::i32}};
  if (!options.fixed_statistics) s.statistics = {{.shape = channels}, {.shape = channels}};
  // Mean 1, variance 3, normalise and scale 4 per element; add and ReLU 1 each.
  const double flops = (options.fixed_statistics ? 4.0 : 8.0) + options.add + options.relu;
  s.forward_flops = flops * double(x[0].elements());
  if (options.activation) s.forward_flops += flops_of(*options.activation) * double(x[0].elements());
  return s;
}

NodeId batch_norm(Graph& graph, std::string name, NodeId x, BatchNormOptions options) {
  return graph.add(std::move(name), std::make_shared<BatchNorm>(options), {x});
}

}  // namespace antichain
