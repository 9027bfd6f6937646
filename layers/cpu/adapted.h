// Runs a oneDNN primitive between tensors whose memory formats may not be those it is fast with. Arguments
// that differ are reordered through the workspace. Usually they are equal and are passed straight through.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "layers/cpu/dnnl.h"

namespace antichain::cpu {

// Reorders the same values to another format or type.
class Reordered {
 public:
  Reordered() = default;  // empty: no reorder
  Reordered(const Desc& from, const Desc& to);

  explicit operator bool() const { return bool(primitive_); }
  const Desc& to() const { return to_; }
  int64_t scratch_bytes() const { return primitive_.scratch_bytes(); }
  void run(Workspace&, void* from, void* to) const;
  void run(Context&, void* from, void* to) const;  // with the context's whole workspace

 private:
  Desc from_, to_;
  Primitive primitive_;
};

// PreparedWeights are copies of weights in the formats in which the forward pass and the input gradient want
// them: one copy where both want the same. A pass whose format is empty reads the weights as they are.
class PreparedWeights {
 public:
  PreparedWeights() = default;  // no copies
  PreparedWeights(const Desc& have, const Desc& forward, const Desc& backward);

  std::vector<TensorSpec> specs() const;  // as Lowering::prepared
  int64_t scratch_bytes() const;
  void run(Context&, const Tensor& weights, std::span<const Tensor> prepared) const;
  const Tensor& forward(const Tensor& weights, std::span<const Tensor> prepared) const {
    return copies_forward_ ? prepared.front() : weights;
  }
  const Tensor& backward(const Tensor& weights, std::span<const Tensor> prepared) const {
    return copies_backward_ ? prepared.back() : weights;
  }

 private:
  bool copies_forward_ = false, copies_backward_ = false;
  std::vector<Reordered> copies_;
};

enum class Direction { in, out };

// A Slot says in which format we hold one argument, and in which format the primitive wants it.
struct Slot {
  int id;  // DNNL_ARG_…
  Direction direction;
  Desc have, want;
};

class Adapted {
 public:
  Adapted() = default;
  template <class PrimitiveDesc>
  Adapted(std::string_view what, const PrimitiveDesc& desc, const std::vector<Slot>& slots)
      : primitive_(what, desc) {
    for (const Slot& slot : slots) add(slot);
  }

  explicit operator bool() const { return bool(primitive_); }
  int64_t workspace_bytes() const;
  // `data` are in the order of the slots.
  void run(Workspace&, std::initializer_list<void*> data) const;

 private:
  struct Converted {
    Slot slot;
    Reordered reorder;  // empty when `have` and `want` are equal
  };
  void add(const Slot&);

  Primitive primitive_;
  std::vector<Converted> slots_;
};

// Computes to ← to + fresh for `n` numbers; T is float or Bf16.
template <class T>
void accumulate(const T* fresh, T* to, int64_t n);

}  // namespace antichain::cpu
