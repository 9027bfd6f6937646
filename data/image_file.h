// Decodes one image file, JPEG or PNG whatever its name, to red, green and blue bytes.
//
// Images become what Pillow's convert("RGB") makes of them, and what is transparent lies on black, as its
// alpha_composite computes it. Grey images get three equal channels, palettes and 16-bit samples (rounded)
// become 8-bit colours, and a file's gamma is left out. CMYK is converted without a colour profile, and a
// JPEG is turned as its EXIF orientation says.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace antichain {

struct Image {
  int height = 0, width = 0;
  std::vector<uint8_t> pixels;  // H x W x 3
};

// Throws Error naming `origin` when the bytes are neither format, are damaged or cut off, or have too many
// pixels.
constexpr int64_t most_image_pixels = int64_t(1) << 27;
Image decode_image(std::span<const uint8_t> bytes, const std::string& origin,
                   int64_t most_pixels = most_image_pixels);
Image read_image(const std::string& file);

// Decode one format each, for decode_image().
Image decode_jpeg(std::span<const uint8_t> bytes, const std::string& origin, int64_t most_pixels);
Image decode_png(std::span<const uint8_t> bytes, const std::string& origin, int64_t most_pixels);
void check_image_size(int64_t height, int64_t width, int64_t most_pixels, const std::string& origin);
[[noreturn]] void refuse_image(const std::string& origin, const std::string& why);

// Returns the orientation, 1 to 8, that an EXIF block (from "Exif" on) says; 1 when it says none or is
// damaged (Camera & Imaging Products Association, "Exchangeable image file format", CIPA DC-008, 2012, tag
// 0x0112).
int exif_orientation(std::span<const uint8_t> block);
// Returns the image turned and mirrored so that it is upright. Orientation 2 is mirrored, 3 turned by 180°, 4
// upside down, 5 to 8 with sides exchanged.
Image upright(Image, int orientation);

// Resizes an image: cuts out the largest middle part of the wanted proportions and scales it, so that nothing
// is distorted and no border is added.
//
// The filter is a triangle as wide as a pixel of the coarser side, so it interpolates linearly when it
// enlarges and averages over all pixels when it shrinks (the "bilinear" of Pillow; Turkowski, "Filters for
// common resampling tasks", Graphics Gems, 1990).
Image resize(const Image&, int height, int width);  // an image of that size is returned as it is

}  // namespace antichain
