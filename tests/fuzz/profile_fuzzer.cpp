// Any bytes may be a profile.json.
#include "partition/profile/profile.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace antichain;
  const auto read = [](const std::string& text) { return profile_from_json(text, "fuzz"); };
  const auto write = [](const Profile& profile) { return to_json(profile); };
  return fuzz(data, size,
              [&](const std::string& text) { expect_round_trip(write(read(text)), read, write); });
}
