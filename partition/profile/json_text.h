// This file has what the profile, plan and cluster files share: quoted text, times and links.
//
// A time is written as whole nanoseconds in decimals, because planners count nanoseconds. It reads back to
// the same nanosecond.
#pragma once

#include <cstdint>
#include <string>

#include "framework/json.h"
#include "partition/profile/profile.h"

namespace antichain {

// This is the largest time or size that a file may state, and also the largest sum of them. 2^50 nanoseconds
// are 13 days and 2^50 bytes are a petabyte. Sums over a model stay far from overflow, and seconds in a
// double still resolve a nanosecond.
constexpr int64_t most_of_all = int64_t(1) << 50;

std::string quoted(const std::string& text);    // as a JSON string; invalid UTF-8 becomes U+FFFD
std::string json_microseconds(double seconds);  // three decimals
std::string json_milliseconds(double seconds);  // six decimals

// Returns seconds. Throws Error when the number is negative or above most_of_all nanoseconds.
double seconds_from_us(const JsonReader&);
double seconds_from_ms(const JsonReader&);

// Writes {"bytes_per_s": …, "latency_us": …, "core_share": …}, the last where it is not 0.
std::string to_json(const Link&);
Link link_from_json(JsonReader);

// A Sum adds up what the nodes of one file state and returns false when the sum is above most_of_all.
class Sum {
 public:
  bool add(int64_t amount) { return amount <= most_of_all - total_ && (total_ += amount, true); }

 private:
  int64_t total_ = 0;
};

}  // namespace antichain
