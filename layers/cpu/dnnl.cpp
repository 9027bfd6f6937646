#include "layers/cpu/dnnl.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <unordered_map>

#include "framework/error.h"

namespace antichain::cpu {
namespace {

using Tag = dnnl::memory::format_tag;

Tag tag_of(Layout layout) {
  switch (layout) {
    case Layout::plain:
      return Tag::abcd;
    case Layout::nhwc:
      return Tag::nhwc;
    case Layout::nChw8c:
      return Tag::nChw8c;
    case Layout::nChw16c:
      return Tag::nChw16c;
    case Layout::OIhw8i8o:
      return Tag::OIhw8i8o;
    case Layout::OIhw8o8i:
      return Tag::OIhw8o8i;
    case Layout::OIhw16i16o:
      return Tag::OIhw16i16o;
    case Layout::OIhw16o16i:
      return Tag::OIhw16o16i;
    case Layout::Oihw16o:
      return Tag::Oihw16o;
    case Layout::Oihw8o:
      break;
  }
  throw Error(fmt::format("the cpu engine has no memory format for layout {}", name_of(layout)));
}

bool uses(dnnl::cpu_isa isa) {
  // The enumerators are bit sets: a machine has AVX-512 when all of avx512_core's bits are there.
  const auto wanted = unsigned(isa);
  return (unsigned(dnnl::get_effective_cpu_isa()) & wanted) == wanted;
}

}  // namespace

dnnl::memory::data_type type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return dnnl::memory::data_type::f32;
    case DType::bf16:
      return dnnl::memory::data_type::bf16;
    case DType::i32:
      return dnnl::memory::data_type::s32;
    case DType::u8:
      return dnnl::memory::data_type::u8;
    case DType::f64:
      break;
  }
  throw Error(fmt::format("the cpu engine does not compute in {}", name_of(dtype)));
}

// The engine is never destroyed: a kernel that outlives main's static objects must still find it. It owns no
// device.
const dnnl::engine& engine() {
  static const auto* const the_engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *the_engine;
}

bool has_avx512() { return uses(dnnl::cpu_isa::avx512_core); }
bool has_avx2() { return uses(dnnl::cpu_isa::avx2); }
bool has_bf16() { return uses(dnnl::cpu_isa::avx512_core_bf16); }

// Linux lets a process use the tiles' registers once it has asked for them (arch/x86/xstate.rst of its
// documentation).
bool has_amx() {
#ifdef __x86_64__
  constexpr long ask = 0x1023, tile_data = 18;
  static const bool granted = syscall(SYS_arch_prctl, ask, tile_data) == 0;
  return granted && uses(dnnl::cpu_isa::avx512_core_amx);
#else
  return false;
#endif
}

Layout blocked() { return has_avx512() ? Layout::nChw16c : Layout::nChw8c; }

Desc describe(const TensorSpec& spec) {
  const dnnl::memory::dims dims(spec.shape.begin(), spec.shape.end());
  return checked("describe a tensor", [&] {
    if (spec.layout == Layout::plain) return describe_plain(dims, type_of(spec.dtype));
    return Desc(dims, type_of(spec.dtype), tag_of(spec.layout));
  });
}

Desc describe_plain(const dnnl::memory::dims& dims, dnnl::memory::data_type type) {
  dnnl::memory::dims strides(dims.size(), 1);
  for (int i = int(dims.size()) - 2; i >= 0; --i) strides[i] = strides[i + 1] * dims[i + 1];
  return Desc(dims, type, strides);
}

void rethrow(const dnnl::error& error, std::string_view doing) {
  throw Error(fmt::format("oneDNN cannot {}: {} (status {})", doing, error.what(), int(error.status)), {},
              ExitCode::failure);
}

std::byte* Workspace::take(int64_t bytes) {
  bytes = rounded(bytes);
  ANTICHAIN_CHECK(bytes <= left_, "a kernel asks for no more workspace than it announced");
  left_ -= bytes;
  return std::exchange(next_, next_ + bytes);
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

void Primitive::run(Workspace& workspace, std::span<const Argument> arguments) const {
  checked("run a primitive", [&] {
    std::unordered_map<int, dnnl::memory> memories;  // looked up by oneDNN, never iterated
    for (const Argument& a : arguments) memories.emplace(a.id, dnnl::memory(a.desc, engine(), a.data));
    if (const int64_t bytes = scratch_bytes())
      memories.emplace(DNNL_ARG_SCRATCHPAD, dnnl::memory(scratchpad_, engine(), workspace.take(bytes)));
    dnnl::stream stream(engine());
    primitive_.execute(stream, memories);
    stream.wait();
  });
}

}  // namespace antichain::cpu
