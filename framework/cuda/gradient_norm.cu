#include "framework/cuda/gradient_norm.h"

#include <cmath>

#include "framework/cuda/arrays.h"
#include "framework/sum_of_squares.h"

namespace antichain::cuda {
namespace {

constexpr int square_width =
    4;  // numbers that a worker takes at a time; pieces begin at multiples of 16 bytes

struct SquareSum {
  double value;
  ANTICHAIN_ANYWHERE void merge(const SquareSum& other) { value += other.value; }
};

// Calls f(number) for a worker's share of a piece.
template <class F>
ANTICHAIN_DEVICE void each_number(const Piece& piece, Index worker, const F& f) {
  auto* const numbers = reinterpret_cast<float*>(const_cast<std::byte*>(piece.at));
  const Index packs = piece.count / square_width;
  for (Index p = worker; p < packs; p += square_workers) {
    float pack[square_width];
    load_pack<square_width>(numbers + p * square_width, pack);
    ANTICHAIN_UNROLL
    for (float& number : pack) f(number);
    if constexpr (F::writes) store_pack<square_width>(pack, numbers + p * square_width);
  }
  for (Index i = packs * square_width + worker; i < piece.count; i += square_workers) f(numbers[i]);
}

struct AddSquare {
  static constexpr bool writes = false;
  double& sum;
  ANTICHAIN_DEVICE void operator()(float x) const { sum += double(x) * double(x); }
};
struct ScaleNumber {
  static constexpr bool writes = true;
  float factor;
  ANTICHAIN_DEVICE void operator()(float& x) const { x *= factor; }
};

void scale_by_live(Stream stream, const GradientList& all) {
  for_each(stream, all.count * square_workers, [=] ANTICHAIN_DEVICE(Index i) {
    const float factor = *all.factor;
    if (factor < 1) each_number(all.pieces[i / square_workers], i % square_workers, ScaleNumber{factor});
  });
}

}  // namespace

void sum_squares(Stream stream, const GradientList& all) {
  for_each(stream, all.count * square_workers, [=] ANTICHAIN_DEVICE(Index i) {
    double sum = 0;
    each_number(all.pieces[i / square_workers], i % square_workers, AddSquare{sum});
    all.partials[i] = sum;
  });
  fold<SquareSum>(
      stream, square_workers, all.count,
      [=] ANTICHAIN_DEVICE(Index worker, Index piece) {
        return SquareSum{all.partials[piece * square_workers + worker]};
      },
      [=] ANTICHAIN_DEVICE(Index piece, const SquareSum& sum) { all.of_pieces[piece] = sum.value; });
  for_each(stream, all.gradients, [=] ANTICHAIN_DEVICE(Index i) {
    double sum = 0;
    for (Index piece = all.first[i]; piece < all.first[i + 1]; ++piece) sum += all.of_pieces[piece];
    all.sums[i] = sum;
  });
}

void clip(Stream stream, const GradientList& all, double most) {
  for_each(stream, 1, [=] ANTICHAIN_DEVICE(Index) {
    double sum = 0;
    for (Index i = 0; i < Index(all.gradients); ++i) sum += all.sums[i];
    *all.factor = clip_factor_of(sqrt(sum), most);
  });
  scale_by_live(stream, all);
}

void scale(Stream stream, const GradientList& all, float factor) {
  for_each(stream, 1, [=] ANTICHAIN_DEVICE(Index) { *all.factor = factor; });
  scale_by_live(stream, all);
}

}  // namespace antichain::cuda
