// Runs Muon (framework/muon.h) on the device: a kernel's matrix is made orthogonal by a few launches each
// iteration, and all other parameters are updated in one.
#include "framework/muon.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "framework/context.h"
#include "framework/cuda/update_loops.h"

namespace antichain::cuda {
namespace {

// c ← a b, row by row: rows x inner times inner x columns. Each number is a sum in the order of the inner
// index.
void multiply(Stream stream, const float* a, const float* b, float* c, Index rows, Index inner,
              Index columns) {
  for_each(stream, int64_t(rows) * columns, [=] ANTICHAIN_DEVICE(Index i) {
    const float* const row = a + i / columns * inner;
    float sum = 0;
    for (Index k = 0; k < inner; ++k) sum += row[k] * b[k * columns + i % columns];
    c[i] = sum;
  });
}

void transpose(Stream stream, const float* from, float* to, Index rows, Index columns) {
  for_each(stream, int64_t(rows) * columns,
           [=] ANTICHAIN_DEVICE(Index i) { to[i] = from[i % rows * columns + i / rows]; });
}

// Divides u by its norm.
void normalise(Stream stream, float* u, double* squares, Index rows, Index columns) {
  for_each(stream, rows,
           [=] ANTICHAIN_DEVICE(Index i) { squares[i] = sum_of_squares(u + int64_t(i) * columns, columns); });
  for_each(stream, 1, [=] ANTICHAIN_DEVICE(Index) {
    double sum = 0;
    for (Index i = 0; i < rows; ++i) sum += squares[i];
    const double norm = sqrt(sum);
    squares[0] = norm > NewtonSchulz::least_norm ? norm : NewtonSchulz::least_norm;
  });
  for_each(stream, int64_t(rows) * columns, [=] ANTICHAIN_DEVICE(Index i) { u[i] /= float(squares[0]); });
}

// Makes u orthogonal, and returns where the result is: u or x.
float* orthogonalise(Stream stream, const MatrixSize& size, float* scratch, const MuonScratch& at) {
  float *const u = scratch + at.u, *const x = scratch + at.x, *const other = scratch + at.other,
               *const a = scratch + at.a, *const a_squared = scratch + at.a_squared;
  const Index m = index_of(size.narrow()), n = index_of(size.wide()), all = index_of(size.elements());
  normalise(stream, u, reinterpret_cast<double*>(scratch), index_of(size.rows), index_of(size.columns));
  if (size.is_tall()) transpose(stream, u, x, index_of(size.rows), index_of(size.columns));
  if (!size.is_tall()) for_each(stream, all, [=] ANTICHAIN_DEVICE(Index i) { x[i] = u[i]; });
  for (int k = 0; k < NewtonSchulz::iterations; ++k) {
    transpose(stream, x, other, m, n);
    multiply(stream, x, other, a, m, n, m);
    multiply(stream, a, a, a_squared, m, m, m);
    for_each(stream, int64_t(m) * m, [=] ANTICHAIN_DEVICE(Index i) {
      a_squared[i] = NewtonSchulz::of_a * a[i] + NewtonSchulz::of_a_squared * a_squared[i];
    });
    multiply(stream, a_squared, x, other, m, m, n);
    for_each(stream, all, [=] ANTICHAIN_DEVICE(Index i) { x[i] = NewtonSchulz::of_x * x[i] + other[i]; });
  }
  if (!size.is_tall()) return x;
  transpose(stream, x, u, m, n);
  return u;
}

void update_kernel(Stream stream, const MuonFactors& factors, const Rate& given, const Trained& t,
                   float* scratch) {
  const MatrixSize size = matrix_of(t.w.shape());
  const MuonScratch at(size, t.w.elements());
  float *const w = t.w.data<float>(), *const m = t.slots[0].data<float>(), *const u = scratch + at.u;
  const float* const dw = t.dw.data<float>();
  Bf16* const rounded = t.rounded ? t.rounded.data<Bf16>() : nullptr;
  for_each(stream, t.w.elements(), [=] ANTICHAIN_DEVICE(Index i) {
    m[i] += factors.of_mean * (dw[i] - m[i]);
    u[i] = factors.step(m[i], dw[i]);
  });
  const float* const made = orthogonalise(stream, size, scratch, at);
  for_each(stream, t.w.elements(), [=] ANTICHAIN_DEVICE(Index i) {
    const float rate = now(given).rate;
    w[i] = w[i] * factors.kept(rate) - factors.length(rate) * made[i];
    if (rounded) rounded[i] = Bf16(w[i]);
  });
}

class MuonUpdate : public Update {
 public:
  MuonUpdate(std::shared_ptr<const Optimiser> optimiser, const Context& context, std::vector<Trained> trained)
      : muon_(std::static_pointer_cast<const Muon>(std::move(optimiser))) {
    std::vector<Trained> others;
    for (Trained& t : trained) (is_orthogonalised(t.w.shape()) ? kernels_ : others).push_back(std::move(t));
    others_ = in_one_launch(adamw)(std::make_shared<AdamW>(muon_->options.adamw), context, std::move(others));
  }

  void run(Context& context, const Rate& rate) const override {
    int64_t most = 0;
    for (const Trained& t : kernels_) most = std::max(most, muon_->scratch_bytes(t.w.spec()));
    auto* const scratch = reinterpret_cast<float*>(context.workspace(most));
    for (const Trained& t : kernels_)
      update_kernel(stream_of(context), factors_of(muon_->options, t.w.shape()), rate, t, scratch);
    others_->run(context, rate);
  }

 private:
  const std::shared_ptr<const Muon> muon_;
  std::vector<Trained> kernels_;
  std::unique_ptr<Update> others_;
};

}  // namespace

// A kernel's layout has the output channels outermost, so its rows are the filters, whatever the order
// within.
std::unique_ptr<Update> make_muon(std::shared_ptr<const Optimiser> optimiser, const Context& context,
                                  std::vector<Trained> trained) {
  return std::make_unique<MuonUpdate>(std::move(optimiser), context, std::move(trained));
}

}  // namespace antichain::cuda
