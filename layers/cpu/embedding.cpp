// An embedding copies rows, and adds gradients to rows in the order of the positions. Threads share the
// positions forward, and the columns backward, so no sum depends on how many they are.
#include "layers/embedding.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/error.h"
#include "layers/cpu/activation.h"
#include "layers/cpu/light_kernels.h"

namespace antichain::cpu {
namespace {

template <class T>
class EmbeddingKernel : public Kernel {
 public:
  EmbeddingKernel(const Embedding& op, const TensorSpec& ids) : sizes_(op, ids) {}

  void forward(Context& context, const Forward& f) const override {
    const int32_t* ids = f.x[0].data<int32_t>();
    check(ids);
    const float* weight = f.params[0].data<float>();
    T* y = f.y.data<T>();
    const int64_t width = sizes_.width;
    for_each_plane(sizes_.ids(), context.threads(), [&](int64_t i) {
      if (ids[i] < 0) {
        std::fill_n(y + i * width, width, T(0.0f));
        return;
      }
      const float* row = weight + ids[i] * width;
      for (int64_t c = 0; c < width; ++c) y[i * width + c] = T(row[c]);
    });
  }

  void backward(Context& context, const Backward& b) const override {
    if (b.dw.empty() || !b.dw[0]) return;
    const int32_t* ids = b.x[0].data<int32_t>();
    const T* dy = b.dy.data<T>();
    float* dw = b.dw[0].data<float>();
    const int64_t width = sizes_.width, parts = std::min<int64_t>(context.threads(), width);
    const bool adds = b.into == Into::accumulate;
    for_each_plane(parts, context.threads(), [&](int64_t part) {
      const int64_t begin = part * width / parts, end = (part + 1) * width / parts;
      for (int64_t r = 0; !adds && r < sizes_.rows; ++r)
        std::fill(dw + r * width + begin, dw + r * width + end, 0.0f);
      for (int64_t i = 0; i < sizes_.ids(); ++i) {
        if (ids[i] < 0 || ids[i] == sizes_.padding) continue;
        float* row = dw + ids[i] * width;
        for (int64_t c = begin; c < end; ++c) row[c] += float(dy[i * width + c]);
      }
    });
  }

 private:
  // Throws Error where a number is neither that of a row nor −1.
  void check(const int32_t* ids) const {
    for (int64_t i = 0; i < sizes_.ids(); ++i)
      if (ids[i] < -1 || ids[i] >= sizes_.rows)
        throw Error(fmt::format("sample {} has number {} at position {}, but the embedding has rows 0 to {}",
                                i / sizes_.positions, ids[i], i % sizes_.positions, sizes_.rows - 1),
                    "check the data set and the size of the vocabulary");
  }

  const EmbeddingSizes sizes_;
};

}  // namespace

KernelEntry embedding_entry() {
  return {.lower = [](const Op&, std::span<const Shape>, std::span<const Layout>,
                      Precision precision) -> Lowering {
            return {.x = {Layout::plain}, .params = {Layout::plain}, .precision = precision, .keeps_x = true};
          },
          .make = [](const Op& op, std::span<const TensorSpec> x,
                     const Lowering& lowering) -> std::unique_ptr<Kernel> {
            return make_typed<EmbeddingKernel>(storage(lowering.precision), static_cast<const Embedding&>(op),
                                               x[0]);
          }};
}

}  // namespace antichain::cpu
