#include "pipeline/run/finite.h"

#include <algorithm>
#include <cstring>

#include "framework/backend.h"

namespace antichain {
namespace {

// A float is infinite or NaN when all bits of its exponent are set. Adding the exponent's lowest bit then
// carries into the sign's place, which was cleared before: an and, an addition and an or per number, without
// a branch, so that compilers make vectors of it. Blocks end the scan early once something is found.
template <class Bits, class Real>
bool scan(const Real* values, int64_t count, Bits magnitude, Bits lowest_of_exponent) {
  constexpr int64_t block = 1 << 14;
  for (int64_t begin = 0; begin < count; begin += block) {
    const int64_t length = count - begin < block ? count - begin : block;
    Bits carried = 0;
    for (int64_t i = 0; i < length; ++i) {
      Bits bits;
      std::memcpy(&bits, values + begin + i, sizeof bits);
      carried |= (bits & magnitude) + lowest_of_exponent;
    }
    if ((carried & ~magnitude) != 0) return false;
  }
  return true;
}

}  // namespace

bool all_finite(const float* values, int64_t count) {
  return scan<uint32_t>(values, count, 0x7FFF'FFFFu, 0x0080'0000u);
}

bool all_finite(const double* values, int64_t count) {
  return scan<uint64_t>(values, count, 0x7FFF'FFFF'FFFF'FFFFu, 0x0010'0000'0000'0000u);
}

bool all_finite(const Bf16* values, int64_t count) {
  return scan<uint16_t>(values, count, uint16_t(0x7FFF), uint16_t(0x0080));
}

bool all_finite(const Context& context, const Tensor& tensor) {
  if (!tensor || tensor.dtype() == DType::i32 || tensor.dtype() == DType::u8) return true;
  const Backend& backend = context.backend();
  if (const std::optional<bool> finite = backend.all_finite(context, tensor)) return *finite;
  Tensor host = tensor;
  if (!backend.host_memory()) {
    host = Tensor::host(tensor.spec());
    backend.copy(context, tensor, host);
  }
  if (host.dtype() == DType::bf16) return all_finite(host.data<Bf16>(), host.elements());
  return host.dtype() == DType::f32 ? all_finite(host.data<float>(), host.elements())
                                    : all_finite(host.data<double>(), host.elements());
}

bool all_finite(const Context& context, const std::vector<Tensor>& tensors) {
  return std::ranges::all_of(tensors, [&](const Tensor& tensor) { return all_finite(context, tensor); });
}

}  // namespace antichain
