// Draws many words of framework/random.h's Philox at a time, with a loop for each instruction set
// (philox_loops.inc), and those of a mask of dropout.
#pragma once

#include <cstdint>

#include "layers/cpu/instruction_set.h"
#include "layers/dropout.h"

namespace antichain::cpu {

struct PhiloxLoops {
  // Writes the words of Philox(key).words(first + i, high), i = 0 … quads − 1, four each.
  void (*words)(uint64_t key, uint64_t first, uint64_t high, int64_t quads, uint32_t* to);
};

// Writes the words for the logical elements from 4 · quad on, four for each of so many quads, of a sample of
// the micro-batch.
inline void draw_words(const DropoutMask::Draw& draw, int64_t sample, int64_t quad, int64_t quads,
                       uint32_t* to) {
  static const PhiloxLoops& loops = best_loops<PhiloxLoops>();
  loops.words(draw.key(), uint64_t(quad), draw.position(sample), quads, to);
}

}  // namespace antichain::cpu
