// Any bytes may be an HDF5 data set. What is opened has every image and every label, within its classes.
#include "data/hdf5_set.h"
#include "tests/fuzz/fuzz_file.h"

// HDF5 1.10 loses some bytes of its own on some damaged files; ours are still looked for.
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5\n"; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace antichain;
  return fuzz(data, size, [&](const std::string& bytes) {
    const FuzzFile file(bytes);
    const ImageSplits sets = read_hdf5_set(file.path());
    std::vector<uint8_t> pixels(size_t(sets.test->image_shape().elements()));
    for (int64_t i = 0; i < sets.test->size(); ++i) {
      sets.test->image(i, pixels);
      if (sets.test->label(i) < 0 || sets.test->label(i) >= sets.test->classes())
        fuzz_fail("a label without a class", "");
    }
  });
}
