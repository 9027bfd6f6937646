// Any bytes may be a checkpoint's manifest, and so may any text under a hash that fits it.
#include "framework/files/checkpoint.h"
#include "framework/random.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace antichain;
  const auto read = [](const std::string& text) { return manifest_from_json(text, "fuzz"); };
  const auto write = [](const Manifest& manifest) { return to_json(manifest); };
  fuzz(data, size, [&](const std::string& text) { read(text); });
  return fuzz(data, size, [&](const std::string& text) {
    char end[40];
    std::snprintf(end, sizeof end, ",\n \"xxh3\": \"%016llx\"\n}\n",
                  static_cast<unsigned long long>(hash_bytes(text)));
    expect_round_trip(write(read(text + end)), read, write);
  });
}
