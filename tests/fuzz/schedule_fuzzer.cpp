// Any bytes may be a schedule's text.
#include "pipeline/schedule/schedule.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace antichain;
  const auto read = [](const std::string& text) { return parse_schedule(text, "fuzz"); };
  const auto write = [](const Schedule& schedule) { return print(schedule); };
  return fuzz(data, size,
              [&](const std::string& text) { expect_round_trip(write(read(text)), read, write); });
}
