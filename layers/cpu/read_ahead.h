// Lets memory move while a tile of numbers computes.
#pragma once

#include <cstdint>

namespace antichain::cpu {

constexpr int64_t tile_numbers = 256;  // of a tile: its values stay in the first-level cache

// Asks for the tile behind the one that is read now.
template <class T>
void read_ahead(const T* now) {
  const char* next = reinterpret_cast<const char*>(now + tile_numbers);
  for (int64_t byte = 0; byte < tile_numbers * int64_t(sizeof(T)); byte += 64)
    __builtin_prefetch(next + byte);
}

// Asks for the lines of a tile that will be written.
template <class T>
void own_lines(T* written) {
  char* at = reinterpret_cast<char*>(written);
  for (int64_t byte = 0; byte < tile_numbers * int64_t(sizeof(T)); byte += 64)
    __builtin_prefetch(at + byte, 1);
}

}  // namespace antichain::cpu
