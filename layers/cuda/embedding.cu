// An embedding gathers rows in one launch. Backward has one thread for each column of each row that occurs:
// it goes through the places where the row is looked up, each of which knows the next, and adds up their
// gradients in order. So no number is added to by two threads.
#include "layers/embedding.h"

#include <cmath>

#include "framework/cuda/launch.h"
#include "layers/cuda/operators.h"
#include "layers/cuda/scratch.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

struct Sizes {
  Index ids, rows, width;
  int32_t padding;

  explicit Sizes(const EmbeddingSizes& s)
      : ids(index_of(s.ids())),
        rows(index_of(s.rows)),
        width(index_of(s.width)),
        padding(int32_t(s.padding)) {
    index_of(s.rows * s.width);
    index_of(s.ids() * s.width);
  }
  ANTICHAIN_ANYWHERE bool known(int32_t id) const { return id >= 0 && Index(id) < rows; }
};

// Of each place: the next one of the same row, or the number of places; and whether it is the first.
struct Places {
  Index *next, *is_first;
};

template <class T>
void look_up(Stream stream, const Sizes& s, const int32_t* ids, const float* weight, T* y) {
  for_each(stream, int64_t(s.ids) * s.width, [=] ANTICHAIN_DEVICE(Index i) {
    const int32_t id = ids[i / s.width];
    const float number = s.known(id) ? weight[Index(id) * s.width + i % s.width] : id == -1 ? 0.0f : nanf("");
    y[i] = T(number);
  });
}

void find_places(Stream stream, const Sizes& s, const int32_t* ids, const Places& places) {
  for_each(stream, s.ids, [=] ANTICHAIN_DEVICE(Index i) {
    Index next = i + 1, before = i;
    while (next < s.ids && ids[next] != ids[i]) ++next;
    while (before > 0 && ids[before - 1] != ids[i]) --before;
    places.next[i] = next;
    places.is_first[i] = before == 0 && s.known(ids[i]) && ids[i] != s.padding;
  });
}

void clear(Stream stream, const Sizes& s, float* dw) {
  for_each(stream, int64_t(s.rows) * s.width, [=] ANTICHAIN_DEVICE(Index i) { dw[i] = 0; });
}

template <class T>
void scatter(Stream stream, const Sizes& s, const int32_t* ids, const Places& places, const T* dy,
             float* dw) {
  for_each(stream, int64_t(s.ids) * s.width, [=] ANTICHAIN_DEVICE(Index i) {
    const Index column = i % s.width;
    Index place = i / s.width;
    if (places.is_first[place] == 0) return;
    float& to = dw[Index(ids[place]) * s.width + column];
    float sum = to;
    for (; place < s.ids; place = places.next[place]) sum += float(dy[place * s.width + column]);
    to = sum;
  });
}

template <class T>
class EmbeddingKernel : public Kernel {
 public:
  explicit EmbeddingKernel(const EmbeddingSizes& sizes) : sizes_(sizes) {}

  static int64_t workspace_bytes(int64_t ids) { return 2 * Scratch::rounded(ids * int64_t(sizeof(Index))); }

  void forward(Context& context, const Forward& f) const override {
    look_up(stream_of(context), sizes_, f.x[0].data<int32_t>(), f.params[0].data<float>(), f.y.data<T>());
  }

  void backward(Context& context, const Backward& b) const override {
    if (b.dw.empty() || !b.dw[0]) return;
    Scratch scratch(context, workspace_bytes(sizes_.ids));
    const Places places{scratch.take<Index>(sizes_.ids), scratch.take<Index>(sizes_.ids)};
    const Stream stream = stream_of(context);
    const int32_t* ids = b.x[0].data<int32_t>();
    find_places(stream, sizes_, ids, places);
    if (b.into == Into::overwrite) clear(stream, sizes_, b.dw[0].data<float>());
    scatter(stream, sizes_, ids, places, b.dy.data<T>(), b.dw[0].data<float>());
  }

 private:
  const Sizes sizes_;
};

}  // namespace

KernelEntry embedding_entry() {
  return {.lower = [](const Op&, std::span<const Shape> x, std::span<const Layout>,
                      Precision precision) -> Lowering {
            return {.x = {Layout::plain},
                    .params = {Layout::plain},
                    .precision = precision,
                    .keeps_x = true,
                    .workspace_bytes = EmbeddingKernel<float>::workspace_bytes(x[0].elements())};
          },
          .make = [](const Op& op, std::span<const TensorSpec> x,
                     const Lowering& lowering) -> std::unique_ptr<Kernel> {
            return make_typed<EmbeddingKernel>(storage(lowering.precision),
                                               EmbeddingSizes(static_cast<const Embedding&>(op), x[0]));
          }};
}

}  // namespace antichain::cuda
