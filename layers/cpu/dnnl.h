// Wraps the parts of oneDNN that every kernel here needs: our tensors as oneDNN memory, primitives that take
// their scratch from the Context, and oneDNN's exceptions as our Errors.
//
// Everything a kernel creates (primitives, descriptors) is immutable, and scratchpads belong to the caller,
// so that one kernel may run on several threads at once. A primitive fixes its thread count when it is
// created: create kernels on a thread that has called Backend::enter().
#pragma once

#include <cstdint>
#include <dnnl.hpp>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>

#include "framework/context.h"
#include "framework/op.h"
#include "framework/tensor.h"

namespace antichain::cpu {

using Desc = dnnl::memory::desc;

const dnnl::engine& engine();

// Return whether oneDNN uses AVX-512 or AVX2 on this machine (layers/cpu/cpu_isa.h and ONEDNN_MAX_CPU_ISA can
// forbid them).
bool has_avx512();
bool has_avx2();
// Returns whether the machine multiplies bf16 numbers by instructions made for it (AVX512_BF16). Without
// them, oneDNN's emulation is slower than float32.
bool has_bf16();
// Returns whether it also multiplies tiles of bf16 numbers (AMX).
bool has_amx();
// Returns the layout in which convolutions want their activations: nChw16c with AVX-512, nChw8c without.
Layout blocked();
// Returns the layout for operators that work on any: the one offered if kernels here share it, otherwise
// `blocked()`.
inline Layout accept(Layout offered) { return offered == Layout::nhwc ? blocked() : offered; }

// Describes a tensor's shape, type and layout in oneDNN's terms. Tensors of rank 2 (N x C) are `nc`, of rank
// 1 `x`.
Desc describe(const TensorSpec&);
inline Desc describe(const Shape& shape, Layout layout, DType dtype = DType::f32) {
  return describe(TensorSpec{shape, dtype, layout});
}
dnnl::memory::data_type type_of(DType);
// Returns a dense row-major descriptor.
Desc describe_plain(const dnnl::memory::dims&, dnnl::memory::data_type = dnnl::memory::data_type::f32);

// Runs `create`, turning dnnl::error into Error("oneDNN can't …: …").
[[noreturn]] void rethrow(const dnnl::error&, std::string_view doing);
template <class F>
auto checked(std::string_view doing, F&& create) {
  try {
    return create();
  } catch (const dnnl::error& error) {
    rethrow(error, doing);
  }
}

// Hands out 64-byte aligned pieces of one call's workspace.
class Workspace {
 public:
  Workspace(Context& context, int64_t bytes) : next_(context.workspace(bytes)), left_(bytes) {}
  static int64_t rounded(int64_t bytes) { return (bytes + 63) / 64 * 64; }
  std::byte* take(int64_t bytes);

 private:
  std::byte* next_;
  int64_t left_;
};

// Returns room for a tensor in a format that only oneDNN knows, as Lowering::prepared needs it.
inline TensorSpec opaque(const Desc& desc) {
  return {.shape = {int64_t(desc.get_size())}, .dtype = DType::u8};
}

// Returns the attribute of every primitive here: the scratchpad is passed to each execution.
dnnl::primitive_attr user_scratchpad();

// An Argument is one argument of an execution.
struct Argument {
  int id;  // DNNL_ARG_…
  Desc desc;
  void* data;
};

// A Primitive is a oneDNN primitive and the scratch it needs. A default-constructed one is empty.
class Primitive {
 public:
  Primitive() = default;
  template <class PrimitiveDesc>
  Primitive(std::string_view what, const PrimitiveDesc& desc)
      : scratchpad_(desc.scratchpad_desc()),
        primitive_(checked(what, [&] { return dnnl::primitive(desc.get()); })) {}

  explicit operator bool() const { return bool(primitive_); }
  int64_t scratch_bytes() const { return Workspace::rounded(int64_t(scratchpad_.get_size())); }
  void run(Workspace&, std::span<const Argument> arguments) const;
  void run(Workspace& workspace, std::initializer_list<Argument> arguments) const {
    run(workspace, std::span(arguments.begin(), arguments.size()));
  }

 private:
  Desc scratchpad_;
  dnnl::primitive primitive_;
};

}  // namespace antichain::cpu
