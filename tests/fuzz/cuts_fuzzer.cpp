// Any bytes may be a cut file.
#include "partition/plan/cut_file.h"
#include "tests/fuzz/fuzz.h"

namespace antichain {
namespace {

std::string as_text(const std::vector<CutLine>& lines) {
  std::string text;
  for (const CutLine& line : lines) {
    text += std::to_string(line.stages) + ":";
    for (const std::string& name : line.last_nodes) text += " " + name;
    text += "\n";
  }
  return text;
}

}  // namespace
}  // namespace antichain

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace antichain;
  const auto read = [](const std::string& text) { return parse_cuts(text, "fuzz"); };
  return fuzz(data, size,
              [&](const std::string& text) { expect_round_trip(as_text(read(text)), read, as_text); });
}
