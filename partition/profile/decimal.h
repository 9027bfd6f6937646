// Decimal numbers read exactly: 0.539 milliseconds are 539,000 nanoseconds, not nearly so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace antichain {

// digits x 10^exponent, with a sign.
struct Decimal {
  bool negative = false;
  std::string digits;  // without leading zeros; empty is zero
  int64_t exponent = 0;
};

// "12", "-0.5", "1e+16", "3.": nullopt for everything else, "nan" and "inf" among it.
std::optional<Decimal> decimal(std::string_view text);

// |number| x 10^shift, rounded half up, once; nullopt when above `most`.
std::optional<int64_t> scaled(const Decimal&, int shift, int64_t most);

}  // namespace antichain
