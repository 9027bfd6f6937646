// Declares the engines that a test executable runs operators on: each executable links one file that lists
// them.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "framework/backend.h"
#include "tests/layers/op_harness.h"

namespace antichain::harness {

// A factor of a TF32 product is the first 19 bits of a float32 number: "wgmma.mma_async operation involving
// type .tf32 will truncate lower 13 bits of the 32-bit input data before multiplication is issued" (PTX ISA).
// So it is off by up to 2^-10 of it, always towards 0, and a product by 2^-9.
constexpr double tf32_product = 0x1p-9;
constexpr uint32_t tf32_bits = ~uint32_t(0x1FFF);

struct Engine {
  std::string name;             // letters, digits and underscores
  std::string backend;          // as backend() knows it
  std::vector<Layout> layouts;  // in which it may be offered images
  double multiplication = 0;    // relative error of one product, where it is more than float32's
  Precision precision = Precision::float32;
  bool rounds_before_bias = false;       // in bf16: what a convolution's bias is added to
  bool rounds_weight_gradients = false;  // in bf16: those of convolutions, once
  // Returns what this machine lacks for an operator, or nothing.
  std::string (*lacks)(const OpCase&) = [](const OpCase&) { return std::string(); };
  friend void PrintTo(const Engine& e, std::ostream* out) { *out << e.name; }
};

std::vector<Engine> engines();
// Returns nullptr where this machine lacks the device; `why` then says so.
const Backend* find(const Engine&, std::string& why);

}  // namespace antichain::harness
