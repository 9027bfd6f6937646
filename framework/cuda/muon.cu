// Runs Muon (framework/muon.h) on the device: a matrix is made orthogonal by a few launches each
// iteration, and all other parameters are updated in one.
#include "framework/muon.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "framework/context.h"
#include "framework/cuda/product.h"
#include "framework/cuda/update_loops.h"

namespace antichain::cuda {
namespace {

constexpr Index square_lanes = 8;  // those of sum_of_squares

// Computes the norm of u, by which u is to be divided. Each row's sum is that of framework/sum_of_squares.h;
// a thread takes each of its lanes.
const double* norm_of(Stream stream, const float* u, double* squares, double* of_lanes, Index rows,
                      Index columns) {
  const Index used = std::min(square_lanes, columns);
  for_each(stream, int64_t(rows) * used, [=] ANTICHAIN_DEVICE(Index i) {
    const float* const row = u + i / used * columns;
    double sum = 0;
    for (Index k = i % used; k < columns; k += square_lanes) sum += double(row[k]) * double(row[k]);
    of_lanes[i] = sum;
  });
  for_each(stream, rows, [=] ANTICHAIN_DEVICE(Index i) {
    double sum = 0;
    for (Index lane = 0; lane < used; ++lane) sum += of_lanes[i * used + lane];
    squares[i] = sum;
  });
  for_each(stream, 1, [=] ANTICHAIN_DEVICE(Index) {
    double sum = 0;
    for (Index i = 0; i < rows; ++i) sum += squares[i];
    const double norm = sqrt(sum);
    squares[0] = norm > NewtonSchulz::least_norm ? norm : NewtonSchulz::least_norm;
  });
  return squares;
}

// Says where number i of a matrix of so many rows is in its transpose.
ANTICHAIN_ANYWHERE Index transposed(Index i, Index rows, Index columns) {
  return i % columns * rows + i / columns;
}

// Makes u orthogonal, and returns where the result is, which is the transpose where u is tall.
const float* orthogonalise(Stream stream, const MatrixSize& size, float* scratch, const MuonScratch& at) {
  float *const u = scratch + at.u, *const a = scratch + at.a, *const polynomial = scratch + at.a_squared;
  float *x = scratch + at.x, *next = scratch + at.other;
  const Index rows = index_of(size.rows), columns = index_of(size.columns);
  const Index m = index_of(size.narrow()), n = index_of(size.wide()), all = index_of(size.elements());
  auto* const of_lanes = reinterpret_cast<double*>(scratch + (at.x + 1) / 2 * 2);  // until x is written
  const double* const norm = norm_of(stream, u, reinterpret_cast<double*>(scratch), of_lanes, rows, columns);
  const bool is_tall = size.is_tall();
  for_each(stream, all, [=] ANTICHAIN_DEVICE(Index i) {
    x[is_tall ? transposed(i, rows, columns) : i] = u[i] / float(*norm);
  });
  for (int k = 0; k < NewtonSchulz::iterations; ++k) {
    multiply(stream, {.a = x, .b = x, .rows = m, .inner = n, .columns = m, .b_is_transposed = true},
             [=] ANTICHAIN_DEVICE(Index i, float sum) { a[i] = sum; });
    multiply(stream, {.a = a, .b = a, .rows = m, .inner = m, .columns = m, .b_is_transposed = false},
             [=] ANTICHAIN_DEVICE(Index i, float sum) {
               polynomial[i] = NewtonSchulz::of_a * a[i] + NewtonSchulz::of_a_squared * sum;
             });
    multiply(stream, {.a = polynomial, .b = x, .rows = m, .inner = m, .columns = n, .b_is_transposed = false},
             [=] ANTICHAIN_DEVICE(Index i, float sum) { next[i] = NewtonSchulz::of_x * x[i] + sum; });
    std::swap(x, next);
  }
  return x;
}

void update_matrix(Stream stream, const MuonFactors& factors, const Rate& given, const Trained& t,
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
  const bool is_tall = size.is_tall();
  const Index rows = index_of(size.rows), columns = index_of(size.columns);
  for_each(stream, t.w.elements(), [=] ANTICHAIN_DEVICE(Index i) {
    const float rate = now(given).rate;
    w[i] =
        w[i] * factors.kept(rate) - factors.length(rate) * made[is_tall ? transposed(i, rows, columns) : i];
    if (rounded) rounded[i] = Bf16(w[i]);
  });
}

class MuonUpdate : public Update {
 public:
  MuonUpdate(std::shared_ptr<const Optimiser> optimiser, const Context& context, std::vector<Trained> trained)
      : muon_(std::static_pointer_cast<const Muon>(std::move(optimiser))) {
    std::vector<Trained> others;
    for (Trained& t : trained) (is_orthogonalised(t) ? matrices_ : others).push_back(std::move(t));
    others_ = in_one_launch(adamw)(std::make_shared<AdamW>(muon_->options.adamw), context, std::move(others));
  }

  void run(Context& context, const Rate& rate) const override {
    int64_t most = 0;
    for (const Trained& t : matrices_)
      most = std::max(most, MuonScratch(matrix_of(t.w.shape()), t.w.elements()).bytes());
    auto* const scratch = reinterpret_cast<float*>(context.workspace(most));
    for (const Trained& t : matrices_)
      update_matrix(stream_of(context), factors_of(muon_->options, t.w.shape()), rate, t, scratch);
    others_->run(context, rate);
  }

 private:
  const std::shared_ptr<const Muon> muon_;
  std::vector<Trained> matrices_;
  std::unique_ptr<Update> others_;
};

}  // namespace

// The layout of a convolution's kernel has the output channels outermost, so its rows are the filters,
// whatever the order within.
std::unique_ptr<Update> make_muon(std::shared_ptr<const Optimiser> optimiser, const Context& context,
                                  std::vector<Trained> trained) {
  return std::make_unique<MuonUpdate>(std::move(optimiser), context, std::move(trained));
}

}  // namespace antichain::cuda
