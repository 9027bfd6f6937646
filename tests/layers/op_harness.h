// Tests any operator: runs a kernel of any backend on guarded, poisoned memory, and returns all results in
// double precision and plain layout, so that engines can be compared whatever their layouts.
//
//   guards     every tensor lies between two zones filled with a pattern: no write outside may go unseen
//   poison     outputs start as NaN: an element (or padding) that is not written shows
//   keeps      backward gets x and y only where the lowering declares that it reads them
//   padding    of every blocked tensor that a kernel writes must be zero
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "framework/backend.h"

namespace antichain::harness {

struct OpCase {
  std::string name;  // letters, digits and underscores
  std::shared_ptr<const Op> op;
  std::vector<Shape> x;
  // Relative to the largest absolute value of a tensor. Float32 has 6e-8 per operation. The longest sums here
  // have a few thousand terms of random sign, and cost about its square root: 50 times that.
  double tolerance = 5e-6;
  bool fused = false;     // with a ReLU; an engine needs not carry it out
  bool optional = false;  // fused with another function: nor this
  // An input gradient in bf16 has the error of so many roundings of its largest number.
  double input_roundings = 1;
  double output_roundings = 1;  // the same of y
  double spread = 1;            // inputs are in (−spread, spread)
  friend void PrintTo(const OpCase& c, std::ostream* out) { *out << c.name; }
};

using Numbers = std::vector<double>;

// Values are the inputs of a kernel: float32 values that either precision holds exactly.
struct Values {
  std::vector<Numbers> x, params, buffers;
  Numbers dy;
};
Values draw(const OpCase&, uint64_t seed = 1);
Values rounded_to_bf16(Values);              // all but buffers, which stay float32
bool is_label(const OpCase&, size_t input);  // or other whole numbers: rows, documents, positions
double loss_scale_of(const OpCase&);         // float32 exactly, not a power of two

// Results are the outputs of a kernel.
struct Results {
  Numbers y, evaluated;
  std::vector<Numbers> dx, dw, statistics, buffers;  // buffers after one micro-batch is absorbed
  bool operator==(const Results&) const = default;   // bit for bit (NaN equals nothing)
};

enum class Halves { together, separately };

struct Ask {
  Layout offered = Layout::plain;  // of every input of four dimensions
  Halves halves = Halves::together;
  Into into = Into::overwrite;
  double dw_before = 0;  // what dw holds before backward, when it accumulates
  int threads = 1;
  Into dx_into = Into::overwrite;  // of a lowering that adds_dx
  double dx_before = 0;
  Numbers dy_term = {};   // a second term of dy, of a lowering that adds_dy
  bool in_place = false;  // y is x itself, where backward reads no x, and dx is dy (framework/in_place.h)
  int only = -1;          // the one gradient that is wanted, of dx and then dw; −1: all
  Precision precision = Precision::float32;
  // Calls the kernel: a forward without backward, a forward, and a backward.
  std::function<void(const std::function<void()>&)> around = [](const auto& call) { call(); };
};

// Reports guard, poison and padding violations as test failures.
Results run(const Backend&, const OpCase&, const Values&, const Ask& = {});
bool inseparable(const Backend&, const OpCase&);
bool adds_dx(const Backend&, const OpCase&);
bool adds_dy(const Backend&, const OpCase&);
// Returns false where the operator has others fused into it and the engine cannot do that.
bool carries_out(const Backend&, const OpCase&);
// Returns whether the CPU engine leaves the operator's products to oneDNN, and has no loops of its own.
bool by_onednn(const OpCase&);
OpCase without_relu(OpCase);  // of a convolution or linear layer

// Returns the number whose gradient backward computes: Σ y · dy, or a loss node's scaled sum of losses.
double objective(const OpCase&, const Values&, const Numbers& y);

// Returns max |a − b| / max |b|; infinite where sizes differ or a number is NaN.
double difference(const Numbers& a, const Numbers& b);

}  // namespace antichain::harness
