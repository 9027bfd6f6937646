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

// A Matrix is a kernel or a matrix in the scratch memory, as it lies and row by row.
class Matrix {
 public:
  Matrix(Context& context, const Trained& t)
      : size_(matrix_of(t.w.shape())),
        at_(size_, t.w.elements()),
        scratch_(reinterpret_cast<float*>(context.workspace(at_.bytes()))),
        lies_(unowned_at(scratch_ + at_.u, t.w.spec())),
        rows_(unowned_at(scratch_ + at_.matrix, {t.w.shape()})) {}

  float* data() const { return lies_.data<float>(); }
  // Makes it orthogonal.
  void orthogonalise() const {
    relayout(lies_, rows_);
    float* const made =
        cpu::orthogonalise(size_, rows_.data<float>(), scratch_ + at_.x, scratch_ + at_.other,
                           scratch_ + at_.a, scratch_ + at_.a_squared, reinterpret_cast<double*>(scratch_));
    relayout(unowned_at(made, rows_.spec()), lies_);
  }

 private:
  const MatrixSize size_;
  const MuonScratch at_;
  float* const scratch_;
  const Tensor lies_, rows_;
};

// Sets `to`, which may be `w`, to kept · w − length · step.
void move(const float* w, const float* step, float kept, float length, const Tensor& to) {
  float* const out = to.data<float>();
#pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < to.elements(); ++i) out[i] = w[i] * kept - length * step[i];
}

}  // namespace

void muon(Context& context, const Optimiser& optimiser, const Rate& rate, const Trained& t) {
  const auto& of = static_cast<const Muon&>(optimiser);
  if (!is_orthogonalised(t)) return adamw(context, AdamW(of.options.adamw), rate, t);
  const MuonFactors factors = factors_of(of.options, t.w.shape());
  const Matrix u(context, t);
  float* const m = t.slots[0].data<float>();
  const float* const dw = t.dw.data<float>();
  float* const step = u.data();
#pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < t.w.elements(); ++i) {
    m[i] += factors.of_mean * (dw[i] - m[i]);
    step[i] = factors.step(m[i], dw[i]);
  }
  u.orthogonalise();
  move(t.w.data<float>(), step, factors.kept(rate.value), factors.length(rate.value), t.w);
}

void muon_ahead(Context& context, const Optimiser& optimiser, const Rate& rate, const Trained& t) {
  const auto& by = static_cast<const Prediction&>(optimiser);
  const auto& of = static_cast<const Muon&>(*by.of);
  if (!is_orthogonalised(t))
    return adamw_ahead(context, Prediction(std::make_shared<AdamW>(of.options.adamw), by.method, by.steps),
                       rate, t);
  const MuonFactors::Predicted predicted = factors_of(of.options, t.w.shape()).predicted(by, rate.value);
  const Matrix u(context, t);
  std::copy_n(t.slots[0].data<float>(), t.w.elements(), u.data());
  u.orthogonalise();
  move(t.dw.data<float>(), u.data(), predicted.kept, predicted.length, t.w);
}

}  // namespace antichain::cpu
