#include "framework/cuda/look.h"

#include <cstring>

#include "framework/cuda/launch.h"

namespace antichain::cuda {
namespace {

constexpr Index workers = 256;    // of a piece: neighbours read neighbours
constexpr Index longest = 16384;  // numbers of a piece

template <class Bits>
ANTICHAIN_ANYWHERE Bits bits_at(const std::byte* numbers, Index i) {
  Bits bits;
  memcpy(&bits, numbers + size_t(i) * sizeof(Bits), sizeof(Bits));
  return bits;
}

// Infinite or NaN: all bits of the exponent are set.
ANTICHAIN_ANYWHERE inline bool spoilt(const Piece& piece, Index i) {
  if (piece.bytes == 2) return (bits_at<uint16_t>(piece.at, i) & 0x7F80u) == 0x7F80u;
  if (piece.bytes == 4) return (bits_at<uint32_t>(piece.at, i) & 0x7F80'0000u) == 0x7F80'0000u;
  return (bits_at<uint64_t>(piece.at, i) & 0x7FF0'0000'0000'0000u) == 0x7FF0'0000'0000'0000u;
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

// Whoever finds one writes the same 1.
void look(Stream stream, const Piece* pieces, int64_t count, int32_t* found) {
  for_each(stream, count * workers, [=] ANTICHAIN_DEVICE(Index i) {
    const Piece piece = pieces[i / workers];
    bool any = false;
    for (Index j = i % workers; j < piece.count; j += workers) any = any || spoilt(piece, j);
    if (any) found[piece.tensor] = 1;
  });
}

}  // namespace antichain::cuda
