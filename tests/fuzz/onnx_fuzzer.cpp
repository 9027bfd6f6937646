// Any bytes may be an ONNX file. A network that is read can be written, and is then read again.
#include "models/onnx/onnx_file.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace antichain;
  return fuzz(data, size, [&](const std::string& bytes) {
    const OnnxNetwork network = network_of_onnx(bytes, "fuzz", "fuzz");
    const Graph graph = network.graph.graph({.microbatch = 2});
    std::string written;
    try {
      written = to_onnx(graph, network.weights, "fuzz");
    } catch (const Error& error) {
      if (std::string(error.what()).find("ONNX has no") == std::string::npos)
        fuzz_fail("what was read is not written:", error.what());
      return;
    }
    try {
      network_of_onnx(written, "again", "fuzz");
    } catch (const Error& error) {
      fuzz_fail("we refuse what we wrote:", error.what());
    }
  });
}
