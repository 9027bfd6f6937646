// Defines the sums that normalisations need, for layers/cuda/sums.h and layers/cuda/row_sums.h: the moments
// of inputs, and the sums of gradients, alone and times the inputs.
//
// A run's terms are summed in float32, 16 at a time, and then on in double. Variances are sums of squared
// distances from the run's first number, so that nothing cancels however far the mean is from 0.
#pragma once

#include "framework/cuda/launch.h"

namespace antichain::cuda {

// Merges moments: Chan, Golub & LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample
// Variances", Stanford STAN-CS-79-773, 1979, formulas 2.1.
struct Moments {
  double n, mean, squares;
  ANTICHAIN_ANYWHERE void merge(const Moments& other) {
    const double delta = other.mean - mean, all = n + other.n, share = other.n / all;
    mean += delta * share;
    squares += other.squares + delta * delta * (n * share);
    n = all;
  }
};

struct MomentsRun {
  using Value = Moments;
  float pivot = 0, part = 0, part_squares = 0;
  double off = 0, squares = 0;

  ANTICHAIN_ANYWHERE void take(bool first, float x) {
    if (first) pivot = x;
    const float distance = x - pivot;
    part += distance;
    part_squares += distance * distance;
  }
  ANTICHAIN_ANYWHERE void carry() {
    off += double(part);
    squares += double(part_squares);
    part = part_squares = 0;
  }
  ANTICHAIN_ANYWHERE Moments value(Index terms) const {
    const double mean = off / double(terms);
    return {double(terms), double(pivot) + mean, squares - off * mean};
  }
};

// A Pair sums gradients, and gradients times centred inputs.
struct Pair {
  double sum, product;
  ANTICHAIN_ANYWHERE void merge(const Pair& other) {
    sum += other.sum;
    product += other.product;
  }
};

struct PairRun {
  using Value = Pair;
  float part = 0, part_product = 0;
  Pair all{0, 0};

  ANTICHAIN_ANYWHERE void take(float dy, float centred) {
    part += dy;
    part_product += dy * centred;
  }
  ANTICHAIN_ANYWHERE void carry() {
    all.sum += double(part);
    all.product += double(part_product);
    part = part_product = 0;
  }
  ANTICHAIN_ANYWHERE Pair value(Index) const { return all; }
};

}  // namespace antichain::cuda
