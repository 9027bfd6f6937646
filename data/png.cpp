// Decodes PNG through libpng's simplified interface, which turns every kind of file into 8-bit colours.
#include <png.h>

#include "data/image_file.h"

namespace antichain {

Image decode_png(std::span<const uint8_t> bytes, const std::string& origin, int64_t most_pixels) {
  struct Reader {
    png_image image{};
    ~Reader() { png_image_free(&image); }
  } reader;
  png_image& png = reader.image;
  png.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()) == 0)
    refuse_image(origin, png.message);
  check_image_size(png.height, png.width, most_pixels, origin);
  png.format = PNG_FORMAT_RGB;
  // 16-bit samples are as bright as 8-bit ones, unless the file says otherwise.
  png.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  Image image{.height = int(png.height),
              .width = int(png.width),
              .pixels = std::vector<uint8_t>(PNG_IMAGE_SIZE(png))};
  const png_color black{};  // behind what is transparent
  if (png_image_finish_read(&png, &black, image.pixels.data(), 0, nullptr) == 0)
    refuse_image(origin, png.message);
  return image;
}

}  // namespace antichain
