// Any bytes may be CIFAR-10's binary files. What is opened has every image, and labels of its classes.
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "data/cifar.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace antichain;
  static const std::string folder = [] {
    std::string pattern = (std::filesystem::temp_directory_path() / "cifar10-fuzz-XXXXXX").string();
    return std::string(mkdtemp(pattern.data()));
  }();
  return fuzz(data, size, [&](const std::string& bytes) {
    for (const char* name : {"/data_batch_1.bin", "/test_batch.bin"})
      std::ofstream(folder + name, std::ios::binary | std::ios::trunc) << bytes;
    const ImageSplits sets = read_cifar(cifar10(), folder);
    std::vector<uint8_t> pixels(PublishedSet::pixel_bytes);
    for (int64_t i = 0; i < sets.train->size(); ++i) {
      sets.train->image(i, pixels);
      if (sets.train->label(i) < 0 || sets.train->label(i) > 9) fuzz_fail("a label without a class", "");
    }
    if (sets.test->size() * cifar10().record_bytes() != int64_t(bytes.size())) fuzz_fail("images lost", "");
  });
}
