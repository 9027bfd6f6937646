// Runs an optimiser's rule over the parts of parameters: four numbers at a time, and what is left over one by
// one. A rule has two functions:
//
//   auto at(const StepNumbers&, bool matrix) const       what it is for a parameter in this step
//   void operator()(float& w, float dw, float (&slots)[n]) const
//
// What `at` returns has the second function, which updates one number and its slots. It has the same
// operations in the same order as on the CPU; neither contracts a · b + c.
#pragma once

#include "framework/cuda/arrays.h"
#include "framework/cuda/update.h"

namespace antichain::cuda {

ANTICHAIN_ANYWHERE inline StepNumbers now(const Rate& rate) {
  return rate.live ? StepNumbers{rate.live->step, rate.live->rate * rate.factor}
                   : StepNumbers{rate.step, rate.value};
}

// Takes `width` numbers at once, the i-th such pack of the part, of a parameter with `kept` slots.
template <int width, int kept, class Rule>
ANTICHAIN_ANYWHERE void update_pack(const Rule& rule, const Part& part, Index i) {
  using Floats = Pack<width, float>;
  Floats w = reinterpret_cast<const Floats*>(part.w)[i];
  const Floats dw = reinterpret_cast<const Floats*>(part.dw)[i];
  Floats slots[most_slots] = {};
  ANTICHAIN_UNROLL
  for (int s = 0; s < kept; ++s) slots[s] = reinterpret_cast<const Floats*>(part.slots[s])[i];
  ANTICHAIN_UNROLL
  for (int k = 0; k < width; ++k) {
    float own[most_slots];
    for (int s = 0; s < kept; ++s) own[s] = slots[s].numbers[k];
    rule(w.numbers[k], dw.numbers[k], own);
    for (int s = 0; s < kept; ++s) slots[s].numbers[k] = own[s];
  }
  reinterpret_cast<Floats*>(part.w)[i] = w;
  ANTICHAIN_UNROLL
  for (int s = 0; s < kept; ++s) reinterpret_cast<Floats*>(part.slots[s])[i] = slots[s];
  if (!part.rounded) return;
  Pack<width, Bf16> rounded;
  for (int k = 0; k < width; ++k) rounded.numbers[k] = Bf16(w.numbers[k]);
  reinterpret_cast<Pack<width, Bf16>*>(part.rounded)[i] = rounded;
}

template <int kept, class Rule>
void update_parts(Stream stream, const Rule& rule, const Rate& given, const Part* parts, int64_t count) {
  constexpr Index workers = 256;  // of a part: neighbours read neighbours
  constexpr int width = 4;        // numbers that a worker takes at a time: 16 bytes
  for_each(stream, count * workers, [=] ANTICHAIN_DEVICE(Index i) {
    const Part part = parts[i / workers];
    const auto of_part = rule.at(now(given), part.matrix);
    const Index worker = i % workers, wide = part.count / width;
    for (Index j = worker; j < wide; j += workers) update_pack<width, kept>(of_part, part, j);
    for (Index j = wide * width + worker; j < part.count; j += workers)
      update_pack<1, kept>(of_part, part, j);
  });
}

}  // namespace antichain::cuda
