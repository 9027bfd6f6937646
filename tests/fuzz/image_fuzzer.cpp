// Any bytes may be a JPEG or PNG. What is decoded has as many bytes as its size says. It has a megapixel at
// most: large images are the library's to decode, and slow under sanitizers.
#include "data/image_file.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace antichain;
  return fuzz(data, size, [&](const std::string& bytes) {
    const Image image =
        decode_image({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, "fuzz", 1 << 20);
    if (image.pixels.size() != size_t(image.height) * size_t(image.width) * 3)
      fuzz_fail("an image of another size than its pixels", "");
  });
}
