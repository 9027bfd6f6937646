// Decodes JPEG through libjpeg. The library reports errors by a jump, so nothing here that the jump leaves
// has a destructor.
#include <csetjmp>
#include <cstdio>
// libjpeg's headers need what stands above them.
#include <jpeglib.h>

#include <jerror.h>

#include "data/image_file.h"

namespace antichain {
namespace {

struct Decoder {
  jpeg_decompress_struct library;
  jpeg_error_mgr errors;
  std::jmp_buf failed;
  char why[JMSG_LENGTH_MAX];
};

[[noreturn]] void leave(j_common_ptr library) {
  auto* decoder = static_cast<Decoder*>(library->client_data);
  library->err->format_message(library, decoder->why);
  std::longjmp(decoder->failed, 1);
}

// Level −1 is a warning: the data are damaged, and the library would invent pixels. Three kinds leave all
// pixels correct and are ignored.
void judge(j_common_ptr library, int level) {
  const int code = library->err->msg_code;
  if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_ADOBE_XFORM && code != JWRN_JFIF_MAJOR)
    leave(library);
}

// Converts four bytes a pixel to three: C M Y K, which Adobe's files hold as 255 − ink.
void from_cmyk(const uint8_t* cmyk, bool inverted, int width, uint8_t* rgb) {
  const auto light = [&](uint8_t v) { return unsigned(inverted ? v : 255 - v); };
  for (int x = 0; x < width; ++x)
    for (int c = 0; c < 3; ++c)
      rgb[3 * x + c] = uint8_t((light(cmyk[4 * x + c]) * light(cmyk[4 * x + 3]) + 127) / 255);
}

// Reads the orientation from the APP1 markers that were saved.
int orientation_of(const jpeg_decompress_struct& library) {
  for (const jpeg_marker_struct* marker = library.marker_list; marker != nullptr; marker = marker->next) {
    const int orientation = exif_orientation({marker->data, marker->data_length});
    if (orientation != 1) return orientation;
  }
  return 1;
}

bool start(Decoder& d, std::span<const uint8_t> bytes) {
  if (setjmp(d.failed) != 0) return false;
  jpeg_create_decompress(&d.library);
  jpeg_mem_src(&d.library, bytes.data(), static_cast<unsigned long>(bytes.size()));
  jpeg_save_markers(&d.library, JPEG_APP0 + 1, 0xFFFF);
  jpeg_read_header(&d.library, TRUE);
  const J_COLOR_SPACE stored = d.library.jpeg_color_space;
  d.library.out_color_space = stored == JCS_CMYK || stored == JCS_YCCK ? JCS_CMYK : JCS_RGB;
  return true;
}

// `row` holds one line of up to 4 bytes a pixel.
bool read_lines(Decoder& d, uint8_t* row, uint8_t* pixels) {
  if (setjmp(d.failed) != 0) return false;
  jpeg_start_decompress(&d.library);
  const auto width = int(d.library.output_width);
  while (d.library.output_scanline < d.library.output_height) {
    uint8_t* line = pixels + size_t(d.library.output_scanline) * size_t(width) * 3;
    uint8_t* target = d.library.output_components == 4 ? row : line;
    jpeg_read_scanlines(&d.library, &target, 1);
    if (target == row) from_cmyk(row, d.library.saw_Adobe_marker != 0, width, line);
  }
  jpeg_finish_decompress(&d.library);
  return true;
}

struct Ended {  // frees what the library holds, however this ends
  Decoder& decoder;
  ~Ended() { jpeg_destroy_decompress(&decoder.library); }
};

}  // namespace

Image decode_jpeg(std::span<const uint8_t> bytes, const std::string& origin, int64_t most_pixels) {
  Decoder decoder{};
  decoder.library.err = jpeg_std_error(&decoder.errors);
  decoder.errors.error_exit = leave;
  decoder.errors.emit_message = judge;
  decoder.library.client_data = &decoder;
  const Ended ended{decoder};
  if (!start(decoder, bytes)) refuse_image(origin, decoder.why);
  const int orientation = orientation_of(decoder.library);  // its markers end with the decoding
  const auto height = int64_t(decoder.library.image_height), width = int64_t(decoder.library.image_width);
  check_image_size(height, width, most_pixels, origin);
  Image image{
      .height = int(height), .width = int(width), .pixels = std::vector<uint8_t>(size_t(height * width * 3))};
  std::vector<uint8_t> row(size_t(width) * 4);
  if (!read_lines(decoder, row.data(), image.pixels.data())) refuse_image(origin, decoder.why);
  return upright(std::move(image), orientation);
}

}  // namespace antichain
