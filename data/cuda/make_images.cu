#include "data/cuda/make_images.h"

#include "data/raw_images.h"
#include "framework/bf16.h"
#include "framework/cuda/launch.h"

namespace antichain::cuda {
namespace {

// Each element looks its byte up as the host's Normaliser does. Neighbouring threads write neighbouring
// elements, and nearly read them, too.
template <class T>
void make(Stream stream, const Tensor& raw, const Tensor& table, const Tensor& images) {
  const Shape& shape = images.shape();
  const Index height = index_of(shape[2]), width = index_of(shape[3]);
  const bool nhwc = images.layout() == Layout::nhwc;
  const DrawnImage* draws = raw_records(raw);
  const uint8_t* pixels = raw_pixels(raw, shape);
  const float* value = table.data<float>();
  T* out = images.data<T>();
  for_each(stream, shape.elements(), [=] ANTICHAIN_DEVICE(Index i) {
    const Index area = height * width, n = i / (3 * area), in_image = i % (3 * area);
    const Index c = nhwc ? in_image % 3 : in_image / area;
    const Index pixel = nhwc ? in_image / 3 : in_image % area;
    const int x = int(pixel % width), y = int(pixel / width);
    const auto& [drawn, real] = draws[n];
    const int row = source_row(drawn, y, int(height)), column = source_column(drawn, x, int(width));
    const bool inside = row != black && column != black;
    const Index byte = inside ? pixels[(n * 3 + c) * area + Index(row) * width + Index(column)] : 0;
    out[i] = T(real && !drawn.erased.holds(y, x) ? value[c * 256 + byte] : 0.0f);
  });
}

}  // namespace

void make_images(Stream stream, const Tensor& raw, const Tensor& table, const Tensor& images) {
  const Shape& shape = images.shape();
  ANTICHAIN_CHECK(shape.rank() == 4 && shape[1] == 3, "images are N x 3 x H x W");
  ANTICHAIN_CHECK(images.layout() == Layout::plain || images.layout() == Layout::nhwc,
                  "images lie in NCHW or NHWC");
  ANTICHAIN_CHECK(raw.spec() == raw_spec(shape) && table.bytes() == int64_t(sizeof(Normaliser::Table)),
                  "bytes and table of these images");
  if (images.dtype() == DType::bf16) return make<Bf16>(stream, raw, table, images);
  ANTICHAIN_CHECK(images.dtype() == DType::f32, "images are float32 or bf16");
  make<float>(stream, raw, table, images);
}

}  // namespace antichain::cuda
