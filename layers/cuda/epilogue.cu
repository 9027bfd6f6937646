#include "layers/cuda/epilogue.h"

#include "framework/cuda/passes.h"
#include "layers/cuda/move.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

// Where the bias is nullptr, nothing is added, so that −0 stays.
template <class T, class U>
void finish(Stream stream, const PixelParts& parts, const T* product, const float* bias, bool relu, U* y) {
  const bool adds = bias != nullptr;
  for_channels(
      stream, parts.pixels, parts.channels,
      [=] ANTICHAIN_DEVICE(float b, float number, float& result) {
        result = adds ? number + b : number;
        if (relu) result = result < 0 ? 0.0f : result;  // lets NaN through, to be seen
      },
      channel(bias), read(product), write(y));
}

template <class T>
void mask(Stream stream, int64_t count, const T* y, const T* dy, T* dproduct) {
  for_elements(
      stream, count,
      [=] ANTICHAIN_DEVICE(Index, float result, float gradient, float& passed) {
        passed = result > 0 ? gradient : 0.0f;
      },
      read(y), read(dy), write(dproduct));
}

// Sets db[c] to Σ dproduct over all pixels, or adds it. Where `dproduct` is nullptr, dy replaces it.
template <class T>
void mask_and_sum(Stream stream, const PixelParts& parts, const T* y, const T* dy, T* dproduct,
                  const Partials<Sum>& partials, float* db, bool adds) {
  const bool masks = dproduct != nullptr;
  sum_channels<SumRun>(
      stream, parts, partials,
      [=] ANTICHAIN_DEVICE(SumRun & run, bool, float result, float gradient, float& passed) {
        passed = !masks || result > 0 ? gradient : 0.0f;
        run.part += passed;
      },
      [=] ANTICHAIN_DEVICE(Index c, const Sum& sum) {
        db[c] = float(adds ? double(db[c]) + sum.value : sum.value);
      },
      read(masks ? y : nullptr), read(dy), write(dproduct));
}

}  // namespace

Epilogue::Epilogue(bool bias, bool relu, const Shape& y, DType dtype)
    : bias_(bias), relu_(relu), dtype_(dtype), parts_(y.elements() / y[1], y[1]) {}

void Epilogue::forward(Context& context, const void* product, DType type, const Forward& f) const {
  if (empty()) return;
  const float* bias = bias_ ? f.params[1].data<float>() : nullptr;
  with_type(type, [&]<class T>() {
    with_type(dtype_, [&]<class U>() {
      finish(stream_of(context), parts_, static_cast<const T*>(product), bias, relu_, f.y.data<U>());
    });
  });
}

int64_t Epilogue::backward_bytes() const {
  const int64_t numbers = int64_t(parts_.pixels) * parts_.channels;
  return (relu_ ? Scratch::rounded(numbers * size_of(dtype_)) : 0) +
         (bias_ ? Partials<Sum>::bytes(parts_) : 0);
}

const std::byte* Epilogue::backward(Context& context, Scratch& scratch, const Backward& b) const {
  const bool sums = bias_ && b.dw.size() > 1 && b.dw[1];
  const std::byte* dproduct = b.dy.raw();
  with_type(dtype_, [&]<class T>() {
    T* masked = relu_ ? scratch.take<T>(b.dy.elements()) : nullptr;
    const T *y = relu_ ? b.y.data<T>() : nullptr, *dy = b.dy.data<T>();
    if (sums)
      mask_and_sum(stream_of(context), parts_, y, dy, masked, {scratch, parts_}, b.dw[1].data<float>(),
                   b.into == Into::accumulate);
    else if (relu_)
      mask(stream_of(context), b.dy.elements(), y, dy, masked);
    if (masked) dproduct = reinterpret_cast<const std::byte*>(masked);
  });
  return dproduct;
}

void accumulate(Stream stream, int64_t elements, const float* fresh, float* dw) {
  move_elements(stream, elements, fresh, dw, Into::accumulate);
}

}  // namespace antichain::cuda
