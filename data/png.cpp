// Decodes PNG through libpng, which turns every kind of file into 8-bit colours. The library reports errors
// by a jump, so nothing here that the jump leaves has a destructor.
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>

#include "data/image_file.h"

namespace antichain {
namespace {

struct PngReader {
  std::span<const uint8_t> left;
  png_structp library = nullptr;
  png_infop info = nullptr;
  std::jmp_buf failed;
  char why[200] = "";
};

[[noreturn]] void leave_png(png_structp library, png_const_charp why) {
  auto* reader = static_cast<PngReader*>(png_get_error_ptr(library));
  std::strncpy(reader->why, why, sizeof reader->why - 1);
  std::longjmp(reader->failed, 1);
}

void pass_warning(png_structp, png_const_charp) {}

void take_bytes(png_structp library, png_bytep out, size_t count) {
  auto* reader = static_cast<PngReader*>(png_get_io_ptr(library));
  if (count > reader->left.size()) png_error(library, "the file ends before the image");
  std::copy_n(reader->left.begin(), count, out);
  reader->left = reader->left.subspan(count);
}

bool begin_png(PngReader& r) {
  if (setjmp(r.failed) != 0) return false;
  r.library = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, leave_png, pass_warning);
  if (r.library == nullptr) return false;
  r.info = png_create_info_struct(r.library);
  if (r.info == nullptr) return false;
  png_set_benign_errors(r.library, 1);
  png_set_read_fn(r.library, &r, take_bytes);
  png_read_info(r.library, r.info);
  return true;
}

// Colours stay as they are stored, whatever gamma and profile say, and what is transparent lies on black, as
// Pillow's alpha_composite computes it.
bool read_rows(PngReader& r, uint8_t* pixels) {
  if (setjmp(r.failed) != 0) return false;
  png_set_expand(r.library);  // palettes, fewer than 8 bits, and transparent colours
  png_set_scale_16(r.library);
  png_set_gray_to_rgb(r.library);
  png_set_gamma_fixed(r.library, PNG_FP_1, PNG_FP_1);  // or transparency would be computed in linear light
  const png_color_16 black{};
  png_set_background(r.library, &black, PNG_BACKGROUND_GAMMA_SCREEN, 0, 1);
  const int passes = png_set_interlace_handling(r.library);
  png_read_update_info(r.library, r.info);
  const size_t row_bytes = size_t(png_get_image_width(r.library, r.info)) * 3;
  if (png_get_rowbytes(r.library, r.info) != row_bytes) png_error(r.library, "its rows have another length");
  for (int pass = 0; pass < passes; ++pass)
    for (png_uint_32 y = 0; y < png_get_image_height(r.library, r.info); ++y)
      png_read_row(r.library, pixels + y * row_bytes, nullptr);
  return true;
}

struct EndedPng {  // frees what the library holds, however this ends
  PngReader& reader;
  ~EndedPng() { png_destroy_read_struct(&reader.library, &reader.info, nullptr); }
};

}  // namespace

Image decode_png(std::span<const uint8_t> bytes, const std::string& origin, int64_t most_pixels) {
  PngReader reader{.left = bytes};
  const EndedPng ended{reader};
  if (!begin_png(reader)) refuse_image(origin, reader.why);
  const int64_t height = png_get_image_height(reader.library, reader.info),
                width = png_get_image_width(reader.library, reader.info);
  check_image_size(height, width, most_pixels, origin);
  Image image{
      .height = int(height), .width = int(width), .pixels = std::vector<uint8_t>(size_t(height * width * 3))};
  if (!read_rows(reader, image.pixels.data())) refuse_image(origin, reader.why);
  return image;
}

}  // namespace antichain
