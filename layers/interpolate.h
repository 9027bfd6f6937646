// Interpolate makes images larger or smaller: torch.nn.functional.interpolate and torch.nn.Upsample, in the
// modes nearest and bilinear (without antialiasing).
//
//   x  N x C x H x W     y  N x C x H' x W', of the given size, or of floor(H · scale) x floor(W · scale)
//   nearest    y at row i is x at row floor(i · step)
//   bilinear   y at row i lies at row (i + 1/2) · step − 1/2 of x, at least 0, between two rows whose weights
//              are linear in the distance; with align_corners it lies at row i · (H − 1) / (H' − 1)
//   step = H / H', or 1 / scale where a scale is given; columns likewise
//
// As in PyTorch, nearest has the step 1 or 1/2 where H' is H or 2 H, whatever the scale.
// Positions are computed in float32, as PyTorch does, so that both choose the same rows.
#pragma once

#include <array>
#include <optional>

#include "framework/graph.h"
#include "layers/window.h"

namespace antichain {

enum class Interpolation { nearest, bilinear };
constexpr std::array<std::string_view, 2> interpolation_names = {"nearest", "bilinear"};
constexpr std::span<const std::string_view> names(Interpolation) { return interpolation_names; }

// A Scale is a pair of factors, of the height and of the width; one number means the same for both.
struct Scale {
  double h, w;
  constexpr Scale(double both) : h(both), w(both) {}
  constexpr Scale(double height, double width) : h(height), w(width) {}
};

struct InterpolateOptions {
  Interpolation mode = Interpolation::nearest;
  // One of the two:
  std::optional<Extent> size = std::nullopt;
  std::optional<Scale> scale = std::nullopt;
  bool align_corners = false;  // of bilinear
};
template <class Visit>
void fields(InterpolateOptions& o, Visit&& visit) {
  visit("mode", o.mode);
  visit("size", o.size);
  visit("scale", o.scale);
  visit("align_corners", o.align_corners);
}

class Interpolate : public Op {
 public:
  explicit Interpolate(InterpolateOptions options);  // Error when an option makes no sense
  std::string_view type() const override { return "interpolate"; }
  std::string str() const override;
  Signature infer(std::span<const Shape> x) const override;

  const InterpolateOptions options;
};

// Between says where one row (or column) of y lies: y = (1 − share) · x[first] + share · x[second].
struct Between {
  int64_t first, second;
  float share;
};

// A LineMap tells where the rows (or columns) of y lie among those of x. It is plain data, for device code
// too.
struct LineMap {
  int64_t in, out;
  float step;
  bool bilinear, align_corners;

  constexpr Between at(int64_t i) const {
    if (!bilinear) {
      const int64_t row = int64_t(float(i) * step);
      const int64_t nearest = row < in ? row : in - 1;
      return {nearest, nearest, 0.0f};
    }
    const float exact = align_corners ? float(i) * step : (float(i) + 0.5f) * step - 0.5f;
    const float position = exact < 0.0f ? 0.0f : exact;
    const int64_t row = int64_t(position), first = row < in ? row : in - 1;
    return {first, first + 1 < in ? first + 1 : first, position - float(first)};
  }

  // Returns the weight of row i of x in row o of y.
  constexpr float weight(int64_t i, int64_t o) const {
    const Between b = at(o);
    return (b.first == i ? 1.0f - b.share : 0.0f) + (b.second == i ? b.share : 0.0f);
  }

  // Returns the first row of y whose second row of x is at least i. As rows of y ascend, so do theirs of x;
  // those that read row i of x are begin_of(i) … end_of(i) − 1.
  constexpr int64_t begin_of(int64_t i) const {
    int64_t low = 0, high = out;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (at(middle).second < i)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
  constexpr int64_t end_of(int64_t i) const {
    int64_t low = 0, high = out;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (at(middle).first <= i)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
};

struct LineMaps {
  LineMap rows, columns;
};
LineMaps line_maps(const Interpolate&, const Shape& x);

NodeId interpolate(Graph&, std::string name, NodeId x, InterpolateOptions);

}  // namespace antichain
