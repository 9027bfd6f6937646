// Any bytes may be a safetensors file. What is read has its tensors' shapes. What weights may have, a
// recording may have, too.
#include "framework/files/safetensors.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace antichain;
  const auto read = [](const std::string& bytes) { return from_safetensors(bytes, "fuzz"); };
  return fuzz(data, size, [&](const std::string& bytes) {
    const std::vector<NamedNumbers> numbers = numbers_from_safetensors(bytes, "fuzz");
    for (const NamedNumbers& tensor : numbers) {
      int64_t elements = 1;
      for (const int64_t d : tensor.shape) elements *= d;
      if (elements != int64_t(tensor.values.size()))
        fuzz_fail("numbers of another size than their shape:", tensor.name);
    }
    const Weights weights = read(bytes);
    if (weights.size() != numbers.size()) fuzz_fail("as numbers the file has other tensors", "");
    for (const NamedTensor& tensor : weights) {
      int64_t elements = 1;
      for (const int64_t d : tensor.shape) elements *= d;
      if (elements != tensor.elements()) fuzz_fail("a tensor of another size than its shape:", tensor.name);
    }
    expect_round_trip(to_safetensors(weights), read, to_safetensors);
  });
}
