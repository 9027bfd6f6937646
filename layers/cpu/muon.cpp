// Runs Muon (framework/muon.h) over one parameter.
#include "framework/muon.h"

#include <algorithm>
#include <cmath>

#include "framework/context.h"
#include "layers/cpu/product.h"
#include "layers/cpu/updates.h"

namespace antichain::cpu {
namespace {

void transpose(const float* from, float* to, int64_t rows, int64_t columns) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < columns; ++i)
    for (int64_t j = 0; j < rows; ++j) to[i * rows + j] = from[j * columns + i];
}

// Makes `u`, which is overwritten where it is wide, orthogonal, and returns where the result is: u or x.
float* orthogonalise(const MatrixSize& size, float* u, float* x, float* other, float* a, float* a_squared,
                     double* squares) {
  double sum = 0;
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < size.rows; ++i) squares[i] = sum_of_squares(u + i * size.columns, size.columns);
  for (int64_t i = 0; i < size.rows; ++i) sum += squares[i];
  const auto norm = float(std::max(std::sqrt(sum), NewtonSchulz::least_norm));
  for (int64_t i = 0; i < size.elements(); ++i) u[i] /= norm;
  const int64_t m = size.narrow(), n = size.wide();
  if (size.is_tall()) transpose(u, x, size.rows, size.columns);
  if (!size.is_tall()) std::copy_n(u, size.elements(), x);
  for (int i = 0; i < NewtonSchulz::iterations; ++i) {
    multiply(x, {.at = x, .row = 1, .column = n}, a, m, n, m, Result::symmetric);
    multiply(a, {.at = a, .row = m, .column = 1}, a_squared, m, m, m, Result::symmetric);
    for (int64_t k = 0; k < m * m; ++k)
      a_squared[k] = NewtonSchulz::of_a * a[k] + NewtonSchulz::of_a_squared * a_squared[k];
    multiply(a_squared, {.at = x, .row = n, .column = 1}, other, m, m, n);
    for (int64_t k = 0; k < size.elements(); ++k) x[k] = NewtonSchulz::of_x * x[k] + other[k];
  }
  if (!size.is_tall()) return x;
  transpose(x, u, m, n);
  return u;
}

Tensor unowned_at(float* place, const TensorSpec& spec) {
  return {spec, {std::shared_ptr<void>(), reinterpret_cast<std::byte*>(place)}};
}

}  // namespace

void muon(Context& context, const Optimiser& optimiser, const Rate& rate, const Trained& t) {
  const auto& of = static_cast<const Muon&>(optimiser);
  if (!is_orthogonalised(t)) return adamw(context, AdamW(of.options.adamw), rate, t);
  const MatrixSize size = matrix_of(t.w.shape());
  const MuonScratch at(size, t.w.elements());
  const MuonFactors factors = factors_of(of.options, t.w.shape());
  auto* const scratch = reinterpret_cast<float*>(context.workspace(at.bytes()));
  const Tensor u = unowned_at(scratch + at.u, t.w.spec()),
               matrix = unowned_at(scratch + at.matrix, {t.w.shape()});
  float* const m = t.slots[0].data<float>();
  const float* const dw = t.dw.data<float>();
  float* const step = u.data<float>();
#pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < t.w.elements(); ++i) {
    m[i] += factors.of_mean * (dw[i] - m[i]);
    step[i] = factors.step(m[i], dw[i]);
  }
  relayout(u, matrix);
  float* const made =
      orthogonalise(size, matrix.data<float>(), scratch + at.x, scratch + at.other, scratch + at.a,
                    scratch + at.a_squared, reinterpret_cast<double*>(scratch));
  relayout(unowned_at(made, matrix.spec()), u);
  float* const w = t.w.data<float>();
  const float kept = factors.kept(rate.value), length = factors.length(rate.value);
#pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < t.w.elements(); ++i) w[i] = w[i] * kept - length * step[i];
}

}  // namespace antichain::cpu
