#include "app/cli/number_text.h"

#include <fmt/format.h>

#include <cmath>

namespace antichain {

std::string milliseconds(double seconds) { return fmt::format("{:.2f}", seconds * 1e3); }
std::string mebibytes(int64_t bytes) { return fmt::format("{:.2f}", double(bytes) / (1 << 20)); }
std::string percent(double share) { return fmt::format("{:.1f}", share * 100); }

std::string compact(double x) { return fmt::format("{:.{}f}", x, x < 100 ? 2 : x < 1000 ? 1 : 0); }
std::string compact_ms(double seconds) { return compact(seconds * 1e3); }
std::string compact_mebibytes(int64_t bytes) { return compact(double(bytes) / (1 << 20)); }

std::string milliseconds_or_dash(double seconds) { return seconds == 0 ? "-" : milliseconds(seconds); }
std::string mebibytes_or_dash(int64_t bytes) { return bytes == 0 ? "-" : mebibytes(bytes); }

std::string counted(int64_t count, const std::string& thing, const std::string& things) {
  return grouped(count) + " " + (count == 1 ? thing : things.empty() ? thing + "s" : things);
}

std::string grouped(int64_t count) {
  std::string digits = std::to_string(count);
  for (int at = int(digits.size()) - 3; at > (count < 0 ? 1 : 0); at -= 3) digits.insert(size_t(at), ",");
  return digits;
}

std::string and_accuracy(double share, int digits) {
  return std::isnan(share) ? "" : fmt::format(", accuracy {:.{}f} %", share * 100, digits);
}

}  // namespace antichain
