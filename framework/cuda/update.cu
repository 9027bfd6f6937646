#include "framework/cuda/update.h"

#include "framework/cuda/arrays.h"
#include "framework/cuda/descend.h"

namespace antichain::cuda {
namespace {

constexpr Index workers = 256;    // of a part: neighbours read neighbours
constexpr Index longest = 16384;  // numbers of a part
constexpr int width = 4;          // numbers that a worker takes at a time: 16 bytes

using Floats = Pack<width, float>;
using Halves = Pack<width, Bf16>;

ANTICHAIN_ANYWHERE inline void descend_wide(const SgdOptions& options, float rate, const Part& part,
                                            Index i) {
  Floats w = reinterpret_cast<const Floats*>(part.w)[i], v{};
  const Floats dw = reinterpret_cast<const Floats*>(part.dw)[i];
  if (part.momentum) v = reinterpret_cast<const Floats*>(part.momentum)[i];
  for (int k = 0; k < width; ++k)
    descend(options, rate, part.momentum, w.numbers[k], dw.numbers[k], v.numbers[k]);
  reinterpret_cast<Floats*>(part.w)[i] = w;
  if (part.momentum) reinterpret_cast<Floats*>(part.momentum)[i] = v;
  if (!part.rounded) return;
  Halves rounded;
  for (int k = 0; k < width; ++k) rounded.numbers[k] = Bf16(w.numbers[k]);
  reinterpret_cast<Halves*>(part.rounded)[i] = rounded;
}

ANTICHAIN_ANYWHERE inline void descend_one(const SgdOptions& options, float rate, const Part& part, Index i) {
  float w = part.w[i], v = part.momentum ? part.momentum[i] : 0;
  descend(options, rate, part.momentum, w, part.dw[i], v);
  part.w[i] = w;
  if (part.momentum) part.momentum[i] = v;
  if (part.rounded) part.rounded[i] = Bf16(w);
}

}  // namespace

std::vector<Part> parts_of(const std::vector<Trained>& trained) {
  std::vector<Part> parts;
  for (const Trained& t : trained) {
    ANTICHAIN_CHECK(!t.rounded || t.rounded.dtype() == DType::bf16, "what is rounded is rounded to bf16");
    for (const Tensor* tensor : {&t.w, &t.dw, &t.momentum})
      ANTICHAIN_CHECK(
          !*tensor || (tensor->dtype() == DType::f32 && tensor->elements() == t.w.elements() &&
                       reinterpret_cast<uintptr_t>(tensor->raw()) % sizeof(Floats) == 0),
          "a parameter, its gradient and momentum are float32 of one size, each at a multiple of 16 bytes");
    for (int64_t begin = 0; begin < t.w.elements(); begin += longest)
      parts.push_back({t.w.data<float>() + begin, t.dw.data<float>() + begin,
                       t.momentum ? t.momentum.data<float>() + begin : nullptr,
                       t.rounded ? t.rounded.data<Bf16>() + begin : nullptr,
                       uint32_t(std::min<int64_t>(longest, t.w.elements() - begin))});
  }
  return parts;
}

void update(Stream stream, const SgdOptions& options, const Rate& given, const Part* parts, int64_t count) {
  for_each(stream, count * workers, [=] ANTICHAIN_DEVICE(Index i) {
    const Part part = parts[i / workers];
    const float rate = now(given);
    const Index worker = i % workers, wide = part.count / width;
    for (Index j = worker; j < wide; j += workers) descend_wide(options, rate, part, j);
    for (Index j = wide * width + worker; j < part.count; j += workers) descend_one(options, rate, part, j);
  });
}

}  // namespace antichain::cuda
