#include "framework/cuda/look.h"

#include <cmath>

#include "framework/cuda/arrays.h"

namespace antichain::cuda {
namespace {

constexpr Index workers = 256;    // of a piece: neighbours read neighbours
constexpr Index longest = 16384;  // numbers of a piece

// Returns whether a number is infinite or NaN.
ANTICHAIN_ANYWHERE inline bool spoilt(Bf16 number) { return (number.bits & 0x7F80u) == 0x7F80u; }
ANTICHAIN_ANYWHERE inline bool spoilt(float number) { return !(fabsf(number) <= 3.402823466e38f); }
ANTICHAIN_ANYWHERE inline bool spoilt(double number) { return !(fabs(number) <= 1.7976931348623157e308); }

// Returns whether one of a worker's numbers is spoilt. It reads whole packs first, where the numbers are
// aligned to them, then the rest.
template <class T>
ANTICHAIN_DEVICE bool any_spoilt(const std::byte* at, Index count, Index worker) {
  constexpr Index width = pack_bytes / sizeof(T);
  const T* numbers = reinterpret_cast<const T*>(at);
  const Index packs = reinterpret_cast<uintptr_t>(at) % pack_bytes == 0 ? count / width : 0;
  bool any = false;
  for (Index p = worker; p < packs; p += workers) {
    const Pack<width, T> pack = reinterpret_cast<const Pack<width, T>*>(at)[p];
    ANTICHAIN_UNROLL
    for (const T number : pack.numbers) any |= spoilt(number);
  }
  for (Index i = packs * width + worker; i < count; i += workers) any |= spoilt(numbers[i]);
  return any;
}

}  // namespace

std::vector<Piece> pieces_of(const std::vector<Tensor>& tensors) {
  ANTICHAIN_CHECK(tensors.size() < (1u << 16), "a piece has 16 bits for its tensor");
  std::vector<Piece> pieces;
  for (size_t t = 0; t < tensors.size(); ++t) {
    const Tensor& tensor = tensors[t];
    if (!tensor || tensor.dtype() == DType::i32 || tensor.dtype() == DType::u8) continue;
    const int64_t bytes = size_of(tensor.dtype()), count = tensor.elements();
    for (int64_t begin = 0; begin < count; begin += longest)
      pieces.push_back({tensor.raw() + begin * bytes, uint32_t(std::min<int64_t>(longest, count - begin)),
                        uint16_t(bytes), uint16_t(t)});
  }
  return pieces;
}

// Every thread that finds one writes the same 1, so that the race is harmless.
void look(Stream stream, const Piece* pieces, int64_t count, int32_t* found) {
  for_each(stream, count * workers, [=] ANTICHAIN_DEVICE(Index i) {
    const Piece piece = pieces[i / workers];
    const Index worker = i % workers;
    const bool any = piece.bytes == 2   ? any_spoilt<Bf16>(piece.at, piece.count, worker)
                     : piece.bytes == 4 ? any_spoilt<float>(piece.at, piece.count, worker)
                                        : any_spoilt<double>(piece.at, piece.count, worker);
    if (any) found[piece.tensor] = 1;
  });
}

}  // namespace antichain::cuda
