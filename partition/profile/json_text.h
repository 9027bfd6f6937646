// What the files of this folder (profile, plan, cluster) write and read alike: quoted text, times, links.
//
// A time is written in decimals of whole nanoseconds, which is what planners count in, and read back to the
// same nanosecond.
#pragma once

#include <cstdint>
#include <string>

#include "framework/json.h"
#include "partition/profile/profile.h"

namespace antichain {

// The largest time or size of one thing that a file may state, and what all of them may add up to: 2^50 is 13
// days in nanoseconds and a petabyte in bytes. Sums over a model stay far from overflow, and seconds in a
// double name their nanosecond.
constexpr int64_t most_of_all = int64_t(1) << 50;

std::string quoted(const std::string& text);    // as a JSON string; what is no UTF-8 becomes U+FFFD
std::string json_microseconds(double seconds);  // three decimals
std::string json_milliseconds(double seconds);  // six decimals

// Seconds. Error when negative or above most_of_all nanoseconds.
double seconds_from_us(const JsonReader&);
double seconds_from_ms(const JsonReader&);

// {"bytes_per_s": …, "latency_us": …}
std::string to_json(const Link&);
Link link_from_json(JsonReader);

// Adds up what the nodes of one file state: false when the sum is beyond most_of_all.
class Sum {
 public:
  bool add(int64_t amount) { return amount <= most_of_all - total_ && (total_ += amount, true); }

 private:
  int64_t total_ = 0;
};

}  // namespace antichain
