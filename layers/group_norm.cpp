#include "layers/group_norm.h"

#include <fmt/format.h>

#include "framework/error.h"
#include "layers/check_inputs.h"

namespace antichain {

GroupNorm::GroupNorm(GroupNormOptions o) : options(o) {
  if (o.groups < 1 || !(o.eps > 0)) throw Error(fmt::format("{} wants a group at least, and eps > 0", str()));
}

std::string GroupNorm::str() const {
  return fmt::format("group_norm({}, eps {}{})", options.groups, options.eps,
                     options.affine ? "" : ", not affine");
}

Signature GroupNorm::infer(std::span<const Shape> x) const {
  check_inputs("group_norm", x, 1, 0);
  if (x[0].rank() < 2) throw Error(fmt::format("group_norm wants samples with channels, not {}", x[0].str()));
  if (x[0][1] % options.groups != 0)
    throw Error(fmt::format("{} channels are no multiple of {} groups", x[0][1], options.groups));
  if (x[0].elements() == x[0][0] * options.groups)
    throw Error(fmt::format("group_norm needs more than one value per group, not {} in {} groups", x[0].str(),
                            options.groups),
                "use fewer groups");
  Signature s;
  s.y = {.shape = x[0]};
  if (options.affine)
    s.params = {{"weight", {x[0][1]}, Initialiser::constant(1)},
                {"bias", {x[0][1]}, Initialiser::constant(0)}};
  // Mean 1, variance 3, normalise and scale 4 per element.
  s.forward_flops = 8.0 * double(x[0].elements());
  return s;
}

NodeId group_norm(Graph& graph, std::string name, NodeId x, GroupNormOptions options) {
  return graph.add(std::move(name), std::make_shared<GroupNorm>(options), {x});
}

}  // namespace antichain
