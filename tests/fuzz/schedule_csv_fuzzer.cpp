// Any bytes may be a schedule's CSV.
#include "pipeline/schedule/schedule_csv.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace antichain;
  const auto read = [](const std::string& text) {
    const CsvSchedule csv = parse_csv(text, "fuzz");
    Schedule schedule{.microbatches = csv.microbatches};
    for (const ComputeOrder& order : csv.orders) schedule.ranks.push_back(order.actions);
    return schedule;
  };
  return fuzz(data, size,
              [&](const std::string& text) { expect_round_trip(to_csv(read(text)), read, to_csv); });
}
