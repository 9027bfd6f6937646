#include "framework/precision.h"

#include <array>

#include "framework/known_names.h"

namespace antichain {
namespace {

constexpr std::array all = {Precision::float32, Precision::bf16};

}  // namespace

std::string_view name_of(Precision precision) { return precision == Precision::bf16 ? "bf16" : "float32"; }

std::vector<std::string> precision_names() {
  std::vector<std::string> names;
  for (const Precision precision : all) names.emplace_back(name_of(precision));
  return names;
}

Precision parse_precision(std::string_view name) {
  for (const Precision precision : all)
    if (name_of(precision) == name) return precision;
  refuse_name("precision", std::string(name), precision_names());
}

DType storage(Precision precision) { return precision == Precision::bf16 ? DType::bf16 : DType::f32; }

}  // namespace antichain
