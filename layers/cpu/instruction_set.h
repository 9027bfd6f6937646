// Chooses which of our loops to run; they are compiled once per instruction set. The project itself is
// compiled for the oldest x86-64, so that one program runs everywhere.
#pragma once

#include "layers/cpu/dnnl.h"

namespace antichain::cpu {

template <class T>
struct PerInstructionSet {
  T baseline, avx2, avx512;
};

template <class T>
T best(const PerInstructionSet<T>& of) {
#ifdef __x86_64__
  if (has_avx512()) return of.avx512;
  if (has_avx2()) return of.avx2;
#endif
  return of.baseline;
}

// Returns the loops of a kind, such as SoftmaxLoops or BatchNormLoops<float>, for each instruction set. Each
// kind has a file that compiles them (every_set.inc).
template <class Loops>
const PerInstructionSet<const Loops*>& every();

template <class Loops>
const Loops& best_loops() {
  return *best(every<Loops>());
}

}  // namespace antichain::cpu
