#include "layers/spectral_norm.h"

#include <fmt/format.h>

#include "framework/error.h"
#include "layers/check_inputs.h"

namespace antichain {

SpectralNorm::SpectralNorm(SpectralNormOptions o) : options(o) {
  if (o.iterations < 1 || !(o.eps > 0))
    throw Error(fmt::format("{} wants an iteration at least, and eps > 0", str()));
}

std::string SpectralNorm::str() const {
  return fmt::format("spectral_norm({}, eps {})", options.iterations, options.eps);
}

Signature SpectralNorm::infer(std::span<const Shape> x) const {
  check_inputs("spectral_norm", x, 1, 0);
  if (x[0].rank() < 3 || x[0][0] != 1)
    throw Error(fmt::format("spectral_norm wants one weight of two axes at least, not {}", x[0].str()));
  const int64_t rows = x[0][1], columns = x[0].elements() / rows;
  Signature s;
  s.y = {.shape = x[0]};
  s.buffers = {{"u", {rows}, Initialiser::constant(1)}, {"v", {columns}, Initialiser::constant(1)}};
  s.statistics = {{.shape = {rows}}, {.shape = {columns}}};
  s.forward_flops = (2.0 * options.iterations + 2) * 2 * double(x[0].elements());
  return s;
}

Lowering lower_spectral_norm(Precision) {
  return {.x = {Layout::plain},
          .y = Layout::plain,
          .stash = {{.shape = {1}, .dtype = DType::f64}},
          .keeps_y = true};
}

}  // namespace antichain
