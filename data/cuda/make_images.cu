#include "data/cuda/make_images.h"

#include "data/raw_images.h"
#include "framework/bf16.h"
#include "framework/cuda/launch.h"

namespace antichain::cuda {
namespace {

struct Images {
  Index channels, height, width;
  const DrawnImage* records;
  const uint8_t* pixels;
  const float* table;

  // Returns what augmented image n has in channel c at row y and column x. It looks the byte up as the host's
  // Normaliser does.
  ANTICHAIN_ANYWHERE float at(Index n, Index c, int y, int x) const {
    const auto& [drawn, real, mix] = records[n];
    if (!real || drawn.erased.holds(y, x)) return 0;
    const int row = source_row(drawn, y, int(height)), column = source_column(drawn, x, int(width));
    if (row == black || column == black) return table[c * 256];
    return table[c * 256 + pixels[((n * channels + c) * height + Index(row)) * width + Index(column)]];
  }
};

// Neighbouring threads write neighbouring elements, and nearly read them, too.
template <class T>
void make(Stream stream, const Tensor& raw, const Tensor& table, const Tensor& images, bool mixed) {
  const Shape& shape = images.shape();
  const bool nhwc = images.layout() == Layout::nhwc;
  const Images from{index_of(shape[1]),
                    index_of(shape[2]),
                    index_of(shape[3]),
                    raw_records(raw),
                    raw_pixels(raw, shape, mixed),
                    table.data<float>()};
  const Index first = mixed ? 1 : 0;
  T* out = images.data<T>();
  for_each(stream, shape.elements(), [=] ANTICHAIN_DEVICE(Index i) {
    const Index area = from.height * from.width, image = from.channels * area;
    const Index n = first + i / image, in_image = i % image;
    const Index c = nhwc ? in_image % from.channels : in_image / area;
    const Index pixel = nhwc ? in_image / from.channels : in_image % area;
    const int x = int(pixel % from.width), y = int(pixel / from.width);
    const float own = from.at(n, c, y, x);
    const Mix& mix = from.records[n].mix;
    out[i] = T(mix.mixes() ? antichain::mixed(mix, y, x, own, from.at(n - 1, c, y, x)) : own);
  });
}

}  // namespace

void make_images(Stream stream, const Tensor& raw, const Tensor& table, const Tensor& images) {
  const Shape& shape = images.shape();
  ANTICHAIN_CHECK(shape.rank() == 4 && (shape[1] == 1 || shape[1] == 3), "images are N x C x H x W");
  ANTICHAIN_CHECK(images.layout() == Layout::plain || images.layout() == Layout::nhwc,
                  "images lie in NCHW or NHWC");
  const bool mixed = raw.spec() == raw_spec(shape, true);
  ANTICHAIN_CHECK(
      (mixed || raw.spec() == raw_spec(shape)) && table.bytes() == int64_t(sizeof(Normaliser::Table)),
      "bytes and table of these images");
  if (images.dtype() == DType::bf16) return make<Bf16>(stream, raw, table, images, mixed);
  ANTICHAIN_CHECK(images.dtype() == DType::f32, "images are float32 or bf16");
  make<float>(stream, raw, table, images, mixed);
}

}  // namespace antichain::cuda
