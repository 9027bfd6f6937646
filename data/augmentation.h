// An Augmentation says what the random draws do to one training image. Host and device apply it by the rules
// below, so that both make the same bits.
#pragma once

namespace antichain {

// A rectangle of an image, in pixels.
struct Box {
  int top = 0, left = 0, height = 0, width = 0;
  constexpr bool holds(int y, int x) const {
    return y >= top && y < top + height && x >= left && x < left + width;
  }
  constexpr bool empty() const { return height <= 0 || width <= 0; }
};

// An operation of TrivialAugment: data/augment_trivial.h.
struct ImageChange {
  int operation = 0;  // none
  double strength = 0;
};

struct Augmentation {
  int down = 0, right = 0;  // by how many pixels the window moves, −padding … padding
  bool flip = false;        // left to right, after the crop
  bool reflects = false;    // beyond its edges the image goes on as in a mirror; otherwise it is black
  ImageChange change;       // after the flip, in bytes
  Box erased;               // zeros there, after normalising
};

constexpr int black = -1;

// Returns which row or column of the image is at `at`, for an image of `extent` rows or columns, or `black`.
// A mirror repeats no edge pixel; it reaches extent − 1 pixels beyond the edge.
constexpr int source(int at, int extent, bool reflects) {
  if (at >= 0 && at < extent) return at;
  if (!reflects) return black;
  return at < 0 ? -at : 2 * (extent - 1) - at;
}

// Return the row and column of the image that an augmented image has at row y and column x, or `black`.
constexpr int source_row(const Augmentation& a, int y, int height) {
  return source(y + a.down, height, a.reflects);
}
constexpr int source_column(const Augmentation& a, int x, int width) {
  return source((a.flip ? width - 1 - x : x) + a.right, width, a.reflects);
}

}  // namespace antichain
