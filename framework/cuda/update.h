// Runs an optimiser over all parameters of a stage in one launch, because there are hundreds and most are
// short vectors.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/bf16.h"
#include "framework/cuda/resources.h"
#include "framework/optimiser.h"

namespace antichain::cuda {

constexpr int most_slots = 2;  // of a parameter

// A Part is a run of one parameter's numbers on the device; it begins at a multiple of 16 bytes.
struct Part {
  float* w = nullptr;
  const float* dw = nullptr;
  float* slots[most_slots] = {};  // those that the optimiser keeps
  Bf16* rounded = nullptr;        // may be nullptr
  uint32_t count = 0;
  bool matrix = false;  // whether the parameter is one (framework/weight_decay.h)
};
std::vector<Part> parts_of(const std::vector<Trained>&);

// An UpdateParts starts a pass over so many parts, which lie on the device. It updates w, the slots and
// rounded of each, by the same operations in the same order as on the CPU.
using UpdateParts = void (*)(Stream, const Optimiser&, const Rate&, const Part* parts, int64_t count);
MakeUpdate in_one_launch(UpdateParts);

// Returns the engine's table: each optimiser by its name, and the function that carries it out.
std::map<std::string, MakeUpdate, std::less<>> updates();
void adamw(Stream, const Optimiser&, const Rate&, const Part* parts, int64_t count);
void ema(Stream, const Optimiser&, const Rate&, const Part* parts, int64_t count);
std::unique_ptr<Update> make_muon(std::shared_ptr<const Optimiser>, const Context&, std::vector<Trained>);
void sgd(Stream, const Optimiser&, const Rate&, const Part* parts, int64_t count);

}  // namespace antichain::cuda
