// These functions format numbers as the program's tables and sentences show them.
#pragma once

#include <cstdint>
#include <string>

namespace antichain {

std::string milliseconds(double seconds);  // "12.34"
std::string mebibytes(int64_t bytes);      // "3.50"
std::string percent(double share);         // "12.3"
std::string grouped(int64_t count);        // "11,173,962"
// Returns "1 stage" or "2 stages". Give `things` where the plural needs more than an s.
std::string counted(int64_t count, const std::string& thing, const std::string& things = "");

// Columns that are to be narrow have fewer digits for larger numbers: "12.34", "123.4", "1234".
std::string compact(double);
std::string compact_ms(double seconds);
std::string compact_mebibytes(int64_t bytes);

// Returns "-" for exactly 0, for columns where most numbers are 0.
std::string milliseconds_or_dash(double seconds);
std::string mebibytes_or_dash(int64_t bytes);

// Returns ", accuracy 12.34 %"; "" of NaN: there is none.
std::string and_accuracy(double share, int digits = 2);

}  // namespace antichain
