#include "layers/cpu/amx_convolution.h"

#include <omp.h>

#include <algorithm>
#include <cstring>

#include "layers/cpu/activation.h"
#include "layers/cpu/dnnl.h"
#include "layers/cpu/sum_pixels.h"

namespace antichain::cpu {
namespace {

using amx::channels, amx::lanes, amx::tile;

// A frame of some images takes as much of the second-level cache.
constexpr int64_t bytes_of_frame = 768 << 10;

int64_t ceil_of(int64_t number, int64_t divisor) { return (number + divisor - 1) / divisor; }
int64_t round_up(int64_t number, int64_t divisor) { return ceil_of(number, divisor) * divisor; }
int64_t bytes_of(int64_t numbers) { return Workspace::rounded(numbers * int64_t(sizeof(Bf16))); }

// Says how pixels along one axis lie in a frame. With a stride there are `phases`; pixel p is the number
// (p + before) / stride of phase (p + before) % stride.
struct FrameAxis {
  int64_t source, before, stride;
  int64_t phases = 1, length = 0;
  int64_t farthest = 0;  // pixels between a result and what it reads last

  explicit FrameAxis(const AxisTaps& axis)
      : source(axis.source), before(axis.before), stride(axis.of[0].stride) {
    int64_t reach = 0;
    for (int64_t i = 0; i < axis.classes; ++i) {
      const Taps& t = axis.of[i];
      const int64_t last = t.taps ? before + t.start + t.taps - 1 : 0;
      phases = std::max(phases, std::min(stride, last + 1));
      farthest = std::max(farthest, last / stride);
      reach = std::max(reach, t.count + last / stride);
    }
    // A tile that reads behind the end of a row finds the zeros with which the next row begins.
    const int64_t zeros = std::max<int64_t>(0, ceil_of(before - (phases - 1), stride));
    length = std::max(std::min((source - 1 + before) / stride + 1, reach), reach - zeros);
  }
  // The gradient's pixels lie where a result of the convolution is computed.
  FrameAxis(int64_t pixels, int64_t in_length) : source(pixels), before(0), stride(1), length(in_length) {}

  // The pixels of a phase that are the source's: begin to end.
  int64_t begin(int64_t phase) const { return std::max<int64_t>(0, ceil_of(before - phase, stride)); }
  int64_t end(int64_t phase) const {
    const int64_t last = source - 1 + before - phase;
    return last < 0 ? 0 : std::min(length, last / stride + 1);
  }
  int64_t source_of(int64_t pixel, int64_t phase) const { return pixel * stride + phase - before; }
};

}  // namespace

struct AmxConvolution::Frame {
  FrameAxis rows, columns;
  int64_t images;  // at once

  Frame(const FrameAxis& of_rows, const FrameAxis& of_columns, int64_t all_images, int64_t planes,
        int64_t most_bytes)
      : rows(of_rows), columns(of_columns), images(1) {
    const int64_t bytes = planes * phases() * image_pixels() * channels * int64_t(sizeof(Bf16));
    const int64_t groups = ceil_of(all_images, std::clamp<int64_t>(most_bytes / bytes, 1, all_images));
    images = ceil_of(all_images, groups);
  }

  int64_t phases() const { return rows.phases * columns.phases; }
  int64_t image_pixels() const { return rows.length * columns.length; }
  // Counts the pixels of one phase, and those behind the images that the last tile reads.
  int64_t pixels() const { return round_up(images * image_pixels() + farthest() + amx::pixels_at_once, 32); }
  int64_t all_pixels() const { return phases() * pixels(); }
  int64_t farthest() const { return rows.farthest * columns.length + columns.farthest; }
  // Returns how many pixels behind the first one hold the results of some images.
  int64_t results(int64_t of_images, int64_t of_rows, int64_t of_columns) const {
    return (of_images - 1) * image_pixels() + (of_rows - 1) * columns.length + of_columns;
  }

  // Calls f(offset in pixels, weight of the kernel) for the taps of a class of rows and one of columns.
  template <class F>
  void for_each_tap(const Taps& of_rows, const Taps& of_columns, int kernel_width, F&& f) const {
    for (int64_t r = 0; r < of_rows.taps; ++r)
      for (int64_t c = 0; c < of_columns.taps; ++c) {
        const int64_t row = rows.before + of_rows.start + r, column = columns.before + of_columns.start + c;
        const int64_t phase = row % rows.stride * columns.phases + column % columns.stride;
        f(phase * pixels() + row / rows.stride * columns.length + column / columns.stride,
          (of_rows.weight + r * of_rows.weight_step) * kernel_width + of_columns.weight +
              c * of_columns.weight_step);
      }
  }

  // Copies 32 channels of one image to a plane of the frame.
  void fill(const Bf16* first, const Bf16* second, int64_t image, Bf16* plane) const {
    static constexpr Bf16 zeros[lanes] = {};
    const int64_t step = columns.stride * lanes, second_step = second ? step : 0;
    for (int64_t phase = 0; phase < phases(); ++phase) {
      const int64_t of_rows = phase / columns.phases, of_columns = phase % columns.phases;
      const int64_t begin = columns.begin(of_columns), end = std::max(begin, columns.end(of_columns));
      Bf16* to = plane + (phase * pixels() + image * image_pixels()) * channels;
      for (int64_t row = 0; row < rows.length; ++row, to += columns.length * channels) {
        if (row < rows.begin(of_rows) || row >= rows.end(of_rows)) {
          std::memset(to, 0, size_t(columns.length * channels) * sizeof(Bf16));
          continue;
        }
        const int64_t at =
            (rows.source_of(row, of_rows) * (columns.source) + columns.source_of(begin, of_columns)) * lanes;
        const Bf16 *a = first + at, *b = second ? second + at : zeros;
        std::memset(to, 0, size_t(begin * channels) * sizeof(Bf16));
        for (int64_t column = begin; column < end; ++column, a += step, b += second_step) {
          std::memcpy(to + column * channels, a, lanes * sizeof(Bf16));
          std::memcpy(to + column * channels + lanes, b, lanes * sizeof(Bf16));
        }
        std::memset(to + end * channels, 0, size_t((columns.length - end) * channels) * sizeof(Bf16));
      }
    }
  }
  // Clears what lies behind so many images.
  void end_plane(int64_t of_images, Bf16* plane) const {
    for (int64_t phase = 0; phase < phases(); ++phase)
      std::memset(plane + (phase * pixels() + of_images * image_pixels()) * channels, 0,
                  size_t((pixels() - of_images * image_pixels()) * channels) * sizeof(Bf16));
  }
  void fill_plane(const Side& side, const Bf16* source, int64_t of_images, int64_t number,
                  Bf16* plane) const {
    for (int64_t n = 0; n < of_images; ++n) {
      const Bf16* const first = source + n * side.image() + 2 * number * side.plane();
      fill(first, 2 * number + 1 < side.blocks ? first + side.plane() : nullptr, n, plane);
    }
    end_plane(of_images, plane);
  }
};

std::optional<AmxConvolution> AmxConvolution::of(const Conv2d& op, const Shape& x, const Shape& y,
                                                 Precision precision) {
  const Conv2dOptions& o = op.options;
  if (precision != Precision::bf16 || !has_amx() || !has_taps(o)) return std::nullopt;
  const int64_t group = x[1] / o.groups;
  const bool whole =
      x[1] == y[1] && x[1] % channels == 0 && group >= 4 && (channels % group == 0 || group % channels == 0);
  if (o.groups > 1 && !whole) return std::nullopt;
  const auto side = [](const Shape& of) { return Side{ceil_of(of[1], lanes), of[2], of[3]}; };
  AmxConvolution it;
  it.images_ = x[0];
  it.taps_ = int64_t(o.kernel.h) * o.kernel.w;
  it.kernel_width_ = o.kernel.w;
  it.x_ = side(x);
  it.y_ = side(y);
  it.bias_ = o.bias;
  it.group_ = o.groups > 1 ? group : 0;
  it.forward_ = forward_taps(o, x, y);
  it.backward_ = backward_taps(o, x, y);
  return it;
}

AmxConvolution::Frame AmxConvolution::sum_frame(const Side& from, const PlaneTaps& taps) const {
  return {FrameAxis(taps.rows), FrameAxis(taps.columns), images_, from.frames(), bytes_of_frame};
}

// Larger gradients are read and written less often.
AmxConvolution::Frame AmxConvolution::weights_frame() const {
  const int64_t gradients = weight_numbers() * int64_t(sizeof(float));
  return {FrameAxis(forward_.rows), FrameAxis(forward_.columns), images_, x_.frames() + y_.frames(),
          std::max(bytes_of_frame, group_ ? 4 * gradients : gradients / 2)};
}

namespace {

int64_t tiles_of(const PlaneTaps& taps) {
  int64_t rows = 0, columns = 0;
  for (int64_t i = 0; i < taps.rows.classes; ++i) rows += taps.rows.of[i].taps;
  for (int64_t i = 0; i < taps.columns.classes; ++i) columns += taps.columns.of[i].taps;
  return rows * columns;
}

// Calls f(rows, columns, number of tiles before) for each class of rows and columns.
template <class F>
void for_each_class(const PlaneTaps& taps, F&& f) {
  int64_t before = 0;
  for (int64_t i = 0; i < taps.rows.classes; ++i)
    for (int64_t j = 0; j < taps.columns.classes; ++j) {
      const Taps &rows = taps.rows.of[i], &columns = taps.columns.of[j];
      f(rows, columns, before);
      before += rows.taps * columns.taps;
    }
}

// A row of transposed pixels is an odd number of cache lines: rows of a tile do not compete for places.
int64_t row_step(int64_t pixels) { return pixels / 32 % 2 ? pixels : pixels + 32; }

}  // namespace

int64_t AmxConvolution::planes_of_sum(const Side& from) const {
  return group_ ? std::max<int64_t>(1, group_ / channels) : from.frames();
}

int64_t AmxConvolution::first_plane(int64_t block) const {
  return group_ ? block * lanes / std::max(group_, channels) * planes_of_sum(x_) : 0;
}

int64_t AmxConvolution::place_of(int64_t out, int64_t in, int64_t tap) const {
  const int64_t ins = group_ ? 2 * planes_of_sum(x_) : x_.blocks;
  return ((out * ins + in - 2 * first_plane(out)) * taps_ + tap) * lanes * lanes;
}

int64_t AmxConvolution::weight_numbers() const { return place_of(y_.blocks, 2 * first_plane(y_.blocks), 0); }

template <class F>
void AmxConvolution::for_each_weight_of_groups(F&& f) const {
  for (int64_t o = 0, plain = 0; o < y_.blocks * lanes; ++o)
    for (int64_t i = o / group_ * group_, end = i + group_; i < end; ++i)
      for (int64_t tap = 0; tap < taps_; ++tap, ++plain)
        f(plain, place_of(o / lanes, i / lanes, tap) + i % lanes * lanes + o % lanes);
}

std::vector<TensorSpec> AmxConvolution::prepared() const {
  const auto tiles = [this](const Side& from, const Side& to, const PlaneTaps& taps) {
    return TensorSpec{.shape = {planes_of_sum(from) * to.blocks * tiles_of(taps) * tile},
                      .dtype = DType::bf16};
  };
  std::vector<TensorSpec> all = {tiles(x_, y_, forward_), tiles(y_, x_, backward_)};
  if (bias_) all.push_back({.shape = {y_.blocks * lanes}});
  return all;
}

// The tiles of a class are in the order in which `multiply` reads them: of each block of results, for each
// plane of the frame, the taps.
void AmxConvolution::pack(const Side& from, const Side& to, const PlaneTaps& taps, bool turned, int threads,
                          const float* weights, Bf16* tiles) const {
  const Frame frame = sum_frame(from, taps);
  const int64_t planes = planes_of_sum(from);
  const auto at = [&](int64_t source, int64_t result, int64_t weight) {
    return weights + (turned ? place_of(source, result, weight) : place_of(result, source, weight));
  };
  for_each_class(taps, [&](const Taps& rows, const Taps& columns, int64_t before) {
    const int64_t count = rows.taps * columns.taps;
    for_each_plane(to.blocks * planes, threads, [&](int64_t unit) {
      const int64_t block = unit / planes, source = (first_plane(block) + unit % planes) * 2;
      Bf16* next = tiles + (before * to.blocks * planes + unit * count) * tile;
      frame.for_each_tap(rows, columns, kernel_width_, [&](int64_t, int64_t weight) {
        amx::loops().pack(at(source, block, weight),
                          source + 1 < from.blocks ? at(source + 1, block, weight) : nullptr, turned, next);
        next += tile;
      });
    });
  });
}

void AmxConvolution::prepare(Context& context, std::span<const Tensor> params,
                             std::span<const Tensor> prepared) const {
  const float* weights = params[0].data<float>();
  if (group_) {
    auto* wide = reinterpret_cast<float*>(context.workspace(weight_numbers() * int64_t(sizeof(float))));
    std::fill_n(wide, weight_numbers(), 0.0f);
    for_each_weight_of_groups([&](int64_t plain, int64_t place) { wide[place] = weights[plain]; });
    weights = wide;
  }
  pack(x_, y_, forward_, false, context.threads(), weights, prepared[0].data<Bf16>());
  pack(y_, x_, backward_, true, context.threads(), weights, prepared[1].data<Bf16>());
  if (!bias_) return;
  float* bias = prepared[2].data<float>();
  std::fill(std::copy_n(params[1].data<float>(), params[1].elements(), bias), bias + y_.blocks * lanes, 0.0f);
}

void AmxConvolution::convolve(Context& context, const Side& from, const Side& to, const PlaneTaps& taps,
                              const Bf16* source, const Bf16* tiles, const float* bias, Bf16* result) const {
  const int threads = context.threads();
  const Frame frame = sum_frame(from, taps);
  const int64_t plane = frame.all_pixels() * channels;
  Bf16* const filled = reinterpret_cast<Bf16*>(context.workspace(bytes_of(from.frames() * plane)));
  for (int64_t first = 0; first < images_; first += frame.images) {
    const int64_t count = std::min(frame.images, images_ - first);
    for_each_plane(from.frames(), threads, [&](int64_t number) {
      frame.fill_plane(from, source + first * from.image(), count, number, filled + number * plane);
    });
    for_each_class(taps, [&](const Taps& rows, const Taps& columns, int64_t before) {
      std::vector<int64_t> offsets;
      frame.for_each_tap(rows, columns, kernel_width_,
                         [&](int64_t pixels, int64_t) { offsets.push_back(pixels * channels); });
      const amx::Taps sum{offsets.data(), int64_t(offsets.size()), planes_of_sum(from), plane};
      const int64_t pixels = frame.results(count, rows.count, columns.count);
      const int64_t at_once = ceil_of(pixels, amx::pixels_at_once);
      const int64_t parts = std::min(at_once, ceil_of(threads, to.blocks));
      for_each_plane(to.blocks * parts, threads, [&](int64_t unit) {
        const int64_t block = unit / parts, part = unit % parts;
        amx::Results results{result + first * to.image() + block * to.plane() +
                                 (rows.first * to.width + columns.first) * lanes,
                             to.image(),
                             rows.step * to.width * lanes,
                             columns.step * lanes,
                             rows.count,
                             columns.count,
                             frame.rows.length,
                             frame.columns.length,
                             bias ? bias + block * lanes : nullptr};
        amx::loops().begin();
        amx::loops().multiply(filled + first_plane(block) * plane, sum,
                              tiles + (before * to.blocks + block * sum.count) * sum.planes * tile,
                              part * at_once / parts * amx::pixels_at_once,
                              std::min(pixels, (part + 1) * at_once / parts * amx::pixels_at_once), results);
        amx::loops().end();
      });
    });
  }
}

// The workspace has a plane for each thread, all of x transposed, and all of dy interleaved.
void AmxConvolution::correlate(Context& context, const Bf16* x, const Bf16* dy, float* dw, Into into) const {
  const int threads = context.threads();
  const Frame frame = weights_frame();
  Frame of_dy = frame;
  of_dy.rows = {y_.height, frame.rows.length}, of_dy.columns = {y_.width, frame.columns.length};
  const int64_t plane = frame.all_pixels() * channels, step = row_step(frame.all_pixels());
  const int64_t dy_step = of_dy.pixels() * lanes;
  Workspace workspace(context, workspace_bytes(threads));
  const auto take = [&](int64_t numbers) {
    return reinterpret_cast<Bf16*>(workspace.take(bytes_of(numbers)));
  };
  Bf16* const planes = take(threads * plane);
  Bf16* const transposed = take(x_.frames() * channels * step);
  Bf16* const interleaved = take(y_.frames() * 2 * dy_step);
  float* const of_groups = dw;
  if (group_) dw = reinterpret_cast<float*>(take(weight_numbers() * 2));

  std::vector<int64_t> offsets, places;
  frame.for_each_tap(forward_.rows.of[0], forward_.columns.of[0], kernel_width_,
                     [&](int64_t pixels, int64_t weight) {
                       offsets.push_back(pixels);
                       places.push_back(weight * lanes * lanes);
                     });
  const int64_t planes_of_in = planes_of_sum(x_);
  const bool idle = int64_t(places.size()) < taps_;  // taps that see nothing but padding
  bool adds = into == Into::accumulate && !group_;
  if (idle && !adds) std::fill_n(dw, weight_numbers(), 0.0f), adds = true;
  for (int64_t first = 0; first < images_; first += frame.images, adds = true) {
    const int64_t count = std::min(frame.images, images_ - first);
    for_each_plane(x_.frames() + y_.frames(), threads, [&](int64_t unit) {
      Bf16* const filled = planes + omp_get_thread_num() * plane;
      if (const int64_t number = unit - x_.frames(); number >= 0) {
        of_dy.fill_plane(y_, dy + first * y_.image(), count, number, filled);
        amx::loops().interleave(filled, of_dy.pixels(), interleaved + number * 2 * dy_step, dy_step);
      } else {
        frame.fill_plane(x_, x + first * x_.image(), count, unit, filled);
        amx::loops().transpose(filled, frame.all_pixels(), transposed + unit * channels * step, step);
      }
    });
    const int64_t pixels = round_up(frame.results(count, y_.height, y_.width), 32);
    for_each_plane(planes_of_in * y_.frames(), threads, [&](int64_t unit) {
      const int64_t out = unit / planes_of_in * 2, in = (first_plane(out) + unit % planes_of_in) * 2;
      amx::loops().begin();
      amx::loops().correlate({transposed + in * lanes * step, step, in + 1 < x_.blocks ? 2 : 1},
                             {interleaved + out * dy_step, dy_step, out + 1 < y_.blocks ? 2 : 1}, pixels,
                             offsets.data(), int64_t(offsets.size()),
                             {dw + place_of(out, in, 0), places.data(), taps_ * lanes * lanes,
                              place_of(1, 0, 0) - place_of(0, 0, 0)},
                             adds);
      amx::loops().end();
    });
  }
  if (group_)
    for_each_weight_of_groups([&](int64_t plain, int64_t place) {
      of_groups[plain] = into == Into::overwrite ? dw[place] : of_groups[plain] + dw[place];
    });
}

int64_t AmxConvolution::workspace_bytes(int threads) const {
  const auto sum = [&](const Side& from, const PlaneTaps& taps) {
    return bytes_of(from.frames() * sum_frame(from, taps).all_pixels() * channels);
  };
  const Frame frame = weights_frame();
  const int64_t pixels = frame.all_pixels();
  return std::max(
      {sum(x_, forward_), sum(y_, backward_),
       bytes_of(threads * pixels * channels) + bytes_of(x_.frames() * channels * row_step(pixels)) +
           bytes_of(y_.frames() * channels * frame.pixels()) + bytes_of(group_ ? 2 * weight_numbers() : 0)});
}

void AmxConvolution::forward(Context& context, const Forward& f) const {
  convolve(context, x_, y_, forward_, f.x[0].data<Bf16>(), f.prepared[0].data<Bf16>(),
           bias_ ? f.prepared[2].data<float>() : nullptr, f.y.data<Bf16>());
}

void AmxConvolution::backward(Context& context, const Backward& b) const {
  const Bf16* dy = b.dy.data<Bf16>();
  if (b.dw.size() > 1 && b.dw[1])
    sum_pixels(Activation(b.dy.spec()), dy, context.threads(), b.dw[1].data<float>(), b.into);
  if (!b.dw.empty() && b.dw[0]) correlate(context, b.x[0].data<Bf16>(), dy, b.dw[0].data<float>(), b.into);
  if (!b.dx.empty() && b.dx[0])
    convolve(context, y_, x_, backward_, dy, b.prepared[1].data<Bf16>(), nullptr, b.dx[0].data<Bf16>());
}

}  // namespace antichain::cpu
