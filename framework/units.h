// Sizes and times as people write and read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace antichain {

// Bytes: "4096", "10M", "64GiB", "1.5 GB". K, M, G, T, alone or with iB, are powers of 1024, with B powers of 1000, as GNU's
// tools have it; letters of either case. Nothing when it is no size.
std::optional<double> parse_size(std::string_view text);

// Seconds: "90", "1h30m", "90min", "250ms", "20us". Nothing when it is no time.
std::optional<double> parse_time(std::string_view text);

std::string size_text(double bytes);  // "17 bytes", "1.50 KiB", "64.00 GiB"

}  // namespace antichain
