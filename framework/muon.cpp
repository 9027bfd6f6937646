#include "framework/muon.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace antichain {

std::string Muon::str() const {
  return fmt::format("Muon with momentum {} of matrices, else {}", options.momentum,
                     AdamW(options.adamw).str());
}

std::vector<std::string> Muon::slots(const ParamSpec& spec) const {
  if (is_orthogonalised(spec)) return {"momentum_buffer"};
  return AdamW(options.adamw).slots(spec);
}

int64_t Muon::scratch_bytes(const ParamSpec& spec, const TensorSpec& lies) const {
  return is_orthogonalised(spec) ? MuonScratch(matrix_of(spec.shape), lies.elements()).bytes() : 0;
}

bool Muon::by_element(const ParamSpec& spec) const { return !is_orthogonalised(spec); }

MuonFactors factors_of(const MuonOptions& o, const Shape& shape) {
  const MatrixSize size = matrix_of(shape);
  return {.of_mean = float(1 - double(o.momentum)),
          .momentum = o.momentum,
          .nesterov = o.nesterov,
          .decay = o.adamw.weight_decay,
          .scale = 0.2 * std::sqrt(double(std::max(size.rows, size.columns)))};
}

}  // namespace antichain
