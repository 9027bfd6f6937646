// Any bytes may be a graph.json. A network that is read survives being written and read again.
#include "models/graph_file.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace antichain;
  const auto read = [](const std::string& text) { return GraphFile(text, "fuzz").graph({.microbatch = 2}); };
  const auto write = [](const Graph& graph) { return to_graph_json(graph, "fuzz"); };
  return fuzz(data, size,
              [&](const std::string& text) { expect_round_trip(write(read(text)), read, write); });
}
