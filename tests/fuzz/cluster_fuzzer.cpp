// Any bytes may be a cluster.json.
#include "partition/profile/cluster.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace antichain;
  const auto read = [](const std::string& text) { return cluster_from_json(text, "fuzz"); };
  const auto write = [](const Cluster& cluster) { return to_json(cluster); };
  return fuzz(data, size,
              [&](const std::string& text) { expect_round_trip(write(read(text)), read, write); });
}
