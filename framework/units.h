// These functions read and write sizes and times as people do.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace antichain {

// Returns bytes: "4096", "10M", "64GiB", "1.5 GB". K, M, G and T, alone or with iB, are powers of 1024; with
// B they are powers of 1000, as in GNU's tools. Letters may have either case. Returns nothing when the text
// is no size.
std::optional<double> parse_size(std::string_view text);

// Returns seconds: "90", "1h30m", "90min", "250ms", "20us". Returns nothing when the text is no time.
std::optional<double> parse_time(std::string_view text);

std::string size_text(double bytes);  // "17 bytes", "1.50 KiB", "64.00 GiB"

}  // namespace antichain
