// This is Muon, which takes steps whose matrices have nearly equal singular values (Jordan et al., "Muon: An
// optimizer for hidden layers in neural networks", 2024), as PyTorch's torch.optim.Muon defines it with
// adjust_lr_fn="match_rms_adamw" (Liu et al., "Muon is Scalable for LLM Training", 2025), but in float32:
//
//   m ← m + (1 − momentum) · (dw − m)
//   u ← nesterov ? dw + momentum · (m − dw) : m
//   w ← w · (1 − rate · weight_decay)
//   w ← w − rate · 0.2 · √max(rows, columns) · orthogonal(u)          framework/newton_schulz.h
//
// It updates the matrices of linear layers within the network (ParamSpec::hidden_matrix), and the kernels of
// convolutions, K x C x R x S, as matrices of K rows, as the authors do in their networks of convolutions.
// Everything else follows AdamW with the same rate and decay: embeddings and positions, the last linear
// layers, biases, and the scales and shifts of normalisation. m is the slot "momentum_buffer", the only one
// of a matrix; the other parameters have AdamW's slots.
//
// A prediction (framework/prediction.h) goes along orthogonal(m), which is 0.2 · √max(rows, columns) long in
// each step, since the length of m does not count; it decays as AdamW's does.
#pragma once

#include "framework/adamw.h"
#include "framework/newton_schulz.h"
#include "framework/sum_of_squares.h"
#include "framework/update_scratch.h"

namespace antichain {

struct MuonOptions {
  float momentum = 0.95f;
  bool nesterov = true;
  AdamWOptions adamw = {.weight_decay = 0.1};  // its decay and groups are for matrices, too
};

class Muon : public Optimiser, public NeedsScratch, public UpdatesByElement {
 public:
  explicit Muon(const MuonOptions& options) : options(options) {}
  std::string_view name() const override { return "muon"; }
  std::string str() const override;
  std::vector<std::string> slots(const ParamSpec&) const override;
  int64_t scratch_bytes(const ParamSpec&, const TensorSpec& lies) const override;
  bool by_element(const ParamSpec&) const override;  // all but matrices

  const MuonOptions options;
};

// Says whether a parameter follows Muon rather than AdamW.
inline bool is_orthogonalised(const ParamSpec& spec) { return spec.hidden_matrix || spec.shape.rank() >= 4; }
// Says the same of one that has its slots.
inline bool is_orthogonalised(const Trained& t) { return t.slots.size() == 1; }
inline MatrixSize matrix_of(const Shape& shape) { return {shape[0], shape.elements() / shape[0]}; }

// A MuonScratch says where an update has its matrices in the scratch memory, in floats from its beginning:
// sums of squares (doubles, one a row), u as the parameter lies and as a matrix, X and another like it, A,
// and A².
struct MuonScratch {
  explicit constexpr MuonScratch(const MatrixSize& size, int64_t stored)
      : u(2 * size.rows),
        matrix(u + stored),
        x(matrix + size.elements()),
        other(x + size.elements()),
        a(other + size.elements()),
        a_squared(a + size.narrow() * size.narrow()),
        end(a_squared + size.narrow() * size.narrow()) {}

  constexpr int64_t bytes() const { return end * int64_t(sizeof(float)); }

  int64_t u, matrix, x, other, a, a_squared, end;
};

// MuonFactors are the numbers that a kernel's updates have in common, and the two that depend on the step.
struct MuonFactors {
  float of_mean = 0, momentum = 0;
  bool nesterov = true;
  double decay = 0, scale = 0;

  constexpr float kept(float rate) const { return float(1 - double(rate) * decay); }
  constexpr float length(float rate) const { return float(double(rate) * scale); }
  constexpr float step(float m, float dw) const { return nesterov ? dw + momentum * (m - dw) : m; }

  // A Predicted weight is w · kept − length · orthogonal(m).
  struct Predicted {
    float kept = 1, length = 0;
  };
  Predicted predicted(const Prediction& by, float rate) const {
    const double all = by.steps * double(rate);
    if (!by.method.step_by_step)
      return {.kept = float(by.method.decays ? 1 - all * decay : 1), .length = float(all * scale)};
    double left = 1, gone = 0;
    for (int i = 0; i < by.steps; ++i) {
      left *= 1 - double(rate) * decay;
      gone = gone * (1 - double(rate) * decay) + double(rate) * scale;
    }
    return {.kept = float(left), .length = float(gone)};
  }
};
MuonFactors factors_of(const MuonOptions&, const Shape&);

}  // namespace antichain
