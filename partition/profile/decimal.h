// This file reads decimal numbers exactly: 0.539 milliseconds are 539,000 nanoseconds, without rounding
// errors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace antichain {

// The number is digits x 10^exponent, with a sign.
struct Decimal {
  bool negative = false;
  std::string digits;  // without leading zeros; empty is zero
  int64_t exponent = 0;
};

// Reads "12", "-0.5", "1e+16", "3."; returns nullopt for everything else, including "nan" and "inf".
std::optional<Decimal> decimal(std::string_view text);

// Returns |number| x 10^shift, rounded half up once, or nullopt when that is above `most`.
std::optional<int64_t> scaled(const Decimal&, int shift, int64_t most);

}  // namespace antichain
