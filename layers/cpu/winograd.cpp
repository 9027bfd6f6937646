#include "layers/cpu/winograd.h"

#include <omp.h>

#include <algorithm>

#include "layers/cpu/activation.h"
#include "layers/cpu/adapted.h"
#include "layers/cpu/dnnl.h"
#include "layers/cpu/for_each_range.h"

namespace antichain::cpu {
namespace {

// Measured with 2 MiB of second-level cache; half and twice as much of each differ by a few percent.
constexpr int64_t tiles_at_once = 98;       // of a thread
constexpr int64_t columns_of_chunk = 64;    // channels
constexpr int64_t weights_of_chunk = 4096;  // pairs of channels, whose values take 576 KiB

int64_t ceil_of(int64_t number, int64_t divisor) { return (number + divisor - 1) / divisor; }
int64_t tiles_along(int64_t pixels) { return ceil_of(pixels, tile_side); }

// Values are those of all points, for each a matrix of `rows` rows and `blocks` blocks of columns. The
// matrices are one row more apart than they are long, lest the 36 compete for the same places of a cache.
struct Values {
  int64_t rows, blocks, lanes;

  int64_t step() const { return rows * lanes; }  // from block to block
  int64_t point_step() const { return blocks * step() + lanes; }
  int64_t floats() const { return points * point_step(); }
  // Where a row of a block is in the first matrix.
  int64_t at(int64_t block, int64_t row) const { return block * step() + row * lanes; }
};

// Chunks cut the channels of both sides, counted in blocks, into `at_least` pieces where blocks allow it.
struct Chunks {
  int64_t rows, columns;

  Chunks(int64_t row_blocks, int64_t column_blocks, int64_t lanes, int64_t at_least = 1)
      : columns(std::min(column_blocks, columns_of_chunk / lanes)) {
    const int64_t most = weights_of_chunk / (columns * lanes * lanes);
    const int64_t of_rows =
        std::max(ceil_of(row_blocks, most), ceil_of(at_least, ceil_of(column_blocks, columns)));
    rows = ceil_of(row_blocks, of_rows);
  }
};

// Shares out tiles of all blocks of channels, some tiles of one block at a time.
template <class F>
void for_each_part(int64_t blocks, Range tiles, int threads, const F& f) {
  constexpr int64_t most = 32;
  const int64_t parts = ceil_of(tiles.end - tiles.begin, most);
  for_each_plane(blocks * parts, threads, [&](int64_t unit) {
    const int64_t first = tiles.begin + unit % parts * most;
    f(unit / parts, Range{first, std::min(tiles.end, first + most)});
  });
}

// Groups share out the tiles evenly. Where there are enough, each thread works on groups of its own, so that
// no thread reads what another has transformed; otherwise all threads work on one group after the other.
struct Groups {
  int64_t tiles, count;
  bool alone;

  Range operator[](int64_t group) const { return {group * tiles / count, (group + 1) * tiles / count}; }
  int64_t largest() const { return ceil_of(tiles, count); }
  int team(int threads) const { return alone ? 1 : threads; }  // of a group
};

// Views one block of channels, tiled as `tiled` is.
template <class T, class Side>
TiledPlanes<T> planes(T* tensor, const Side& side, int64_t lanes, int64_t block, const Side& tiled,
                      int64_t row = 0, int64_t column = 0) {
  const int64_t plane = side.height * side.width * lanes;
  return {tensor + block * plane,    side.image_blocks * plane, side.height, side.width,
          tiles_along(tiled.height), tiles_along(tiled.width),  row,         column};
}

// The tiles of a group are transformed, and then each thread of its team multiplies a part of them by a chunk
// of the filters, which it has transformed.
struct ConvolveSizes {
  Groups groups;
  Chunks chunks;
  Values pixels, filters, results;

  ConvolveSizes(int64_t tiles, int64_t from_blocks, int64_t to_blocks, int64_t lanes, int threads)
      : groups(groups_of(tiles, threads)),
        chunks(from_blocks, to_blocks, lanes),
        pixels{groups.largest(), from_blocks, lanes},
        filters{chunks.rows * lanes, chunks.columns, lanes},
        results{std::min(groups.largest(), tiles_at_once), chunks.columns, lanes} {}

  static Groups groups_of(int64_t tiles, int threads) {
    if (threads > 1 && tiles < threads * tiles_at_once) return {tiles, 1, false};
    return {tiles, threads * ceil_of(tiles, threads * tiles_at_once), true};
  }
  int64_t thread_floats() const { return filters.floats() + results.floats(); }
  int64_t all_pixels(int threads) const { return (groups.alone ? threads : 1) * pixels.floats(); }
  int64_t bytes(int threads, int64_t bias) const {
    return Workspace::rounded((all_pixels(threads) + threads * thread_floats() + bias) *
                              int64_t(sizeof(float)));
  }
};

// A sum over the tiles of a group is computed by chunks of the filters. Threads that work alone keep the sums
// of their groups, which are added in the order of the groups.
struct CorrelateSizes {
  Groups groups;
  Chunks chunks;
  Values pixels, gradients, filters;
  int64_t kept;

  CorrelateSizes(int64_t tiles, int64_t x_blocks, int64_t y_blocks, int64_t lanes, int threads)
      : groups(groups_of(tiles, threads)),
        chunks(x_blocks, y_blocks, lanes, groups.team(threads)),
        pixels{groups.largest(), x_blocks, lanes},
        gradients{groups.largest(), y_blocks, lanes},
        filters{chunks.rows * lanes, chunks.columns, lanes},
        kept(groups.alone && threads > 1 ? x_blocks * y_blocks * lanes * lanes * 9 : 0) {}

  // How many groups there are follows from the tiles alone, because it is a part of the order of the sums.
  static Groups groups_of(int64_t tiles, int threads) {
    const int64_t count = tiles <= tiles_at_once ? 1 : 2 * ceil_of(tiles, 2 * tiles_at_once);
    return {tiles, count, count >= threads};
  }
  int64_t group_floats() const { return pixels.floats() + gradients.floats() + kept; }
  int64_t bytes(int threads) const {
    return ((groups.alone ? threads : 1) * group_floats() + threads * filters.floats()) *
           int64_t(sizeof(float));
  }
};

// What a pass costs, in pixels for which a direct pass takes as long: so many a tile, so many more a tile the
// fewer channels there are to sum over, and so many for the transform of the filters. Measured on AVX-512 for
// 16 to 512 channels, maps of 4 x 4 to 32 x 32 and batches of 1 to 32; on AVX2 direct passes are slower yet.
double cost_in_pixels(Winograd::Pass pass, int64_t tiles, int64_t channels) {
  const auto cost = [&](double tile, double filter) {
    return (tile + 50 / double(channels)) * double(tiles) + filter;
  };
  switch (pass) {
    case Winograd::Pass::forward:
      return cost(7, 24);
    case Winograd::Pass::data:
      return cost(7, 16);
    case Winograd::Pass::weights:
      break;
  }
  return cost(5.5, 12);
}

// Returns how many times as long as a usual one in float32 a direct pass takes. On AVX2 oneDNN 2.6.3 has no
// code of its own for weight gradients of so few pixels, and reaches a third of its usual rate on one thread,
// and no more on two. In bf16 it multiplies twice as many numbers at once.
double times_as_slow(Winograd::Pass pass, const Shape& y, Precision precision) {
  if (precision == Precision::bf16) return 0.6;
  return pass == Winograd::Pass::weights && !has_avx512() && y[2] * y[3] <= 4 ? 3 : 1;
}

}  // namespace

bool Winograd::pays(const Conv2dOptions& o, const Shape& x, const Shape& y, Precision precision, Pass pass) {
  const int64_t channels = std::min(x[1], y[1]) / o.groups;
  const bool possible = (has_avx512() || has_avx2()) && o.kernel == Extent(3) && o.stride == Extent(1) &&
                        o.dilation == Extent(1) && std::max(o.pad.before.h, o.pad.before.w) <= 2 &&
                        channels >= 16 && (o.groups == 1 || whole_groups(o.groups, x, y));
  const int64_t tiles = y[0] * tiles_along(y[2]) * tiles_along(y[3]), pixels = y[0] * y[2] * y[3];
  return possible &&
         cost_in_pixels(pass, tiles, channels) < times_as_slow(pass, y, precision) * double(pixels);
}

Winograd::Winograd(const Shape& x, const Shape& y, Extent before, int groups, const WinogradLoops& loops)
    : loops_(&loops), channel_groups_(groups), images_(x[0]), lanes_(loops.lanes), before_(before) {
  const auto side = [&](const Shape& of) {
    const int64_t channels = of[1] / groups;
    return Side{channels, ceil_of(channels, lanes_), ceil_of(of[1], lanes_), of[2], of[3]};
  };
  x_ = side(x);
  y_ = side(y);
}

template <class F>
void Winograd::for_each_group(std::byte* workspace, int64_t bytes, int threads, const F& f) const {
  if (teams(threads) > 1)
    return for_each_plane(channel_groups_, threads,
                          [&](int64_t group) { f(group, workspace + omp_get_thread_num() * bytes, 1); });
  for (int64_t group = 0; group < channel_groups_; ++group) f(group, workspace, threads);
}

int64_t Winograd::tiles(const Side& of) const {
  return images_ * tiles_along(of.height) * tiles_along(of.width);
}

// One convolution of stride 1, forward or backward.
template <class T>
struct Winograd::Filtered {
  const Side &from, &to;
  const T* source;
  const float *weights, *bias;
  T* result;
  int64_t row, column;  // where the source's first tile begins
  bool turned;
};

int64_t Winograd::convolve_bytes(const Side& from, const Side& to, int threads) const {
  return ConvolveSizes(tiles(to), from.blocks, to.blocks, lanes_, threads).bytes(threads, to.blocks * lanes_);
}

template <class T>
void Winograd::convolve(std::byte* workspace, int threads, const Filtered<T>& f) const {
  const WinogradLoops& loops = *loops_;
  const Side &from = f.from, &to = f.to;
  const ConvolveSizes size(tiles(to), from.blocks, to.blocks, lanes_, threads);
  float* const all_pixels = reinterpret_cast<float*>(workspace);
  float* const of_threads = all_pixels + size.all_pixels(threads);
  float* bias = nullptr;
  if (f.bias) {
    bias = of_threads + threads * size.thread_floats();
    std::fill(std::copy_n(f.bias, to.channels, bias), bias + to.blocks * lanes_, 0.0f);
  }
  const int64_t outs = ceil_of(to.blocks, size.chunks.columns);
  const int team = size.groups.team(threads);

  const auto convolve_group = [&](int64_t group, int thread) {
    const Range now = size.groups[group];
    float* const v = all_pixels + thread * size.pixels.floats();
    for_each_part(from.blocks, now, team, [&](int64_t block, Range part) {
      loops.of<T>().from_pixels(
          planes(f.source, from, lanes_, block, to, f.row, f.column), part,
          {v + size.pixels.at(block, part.begin - now.begin), size.pixels.point_step()});
    });
    const int64_t count = now.end - now.begin;
    const int64_t parts = std::max(ceil_of(count, size.results.rows), std::min(count, ceil_of(team, outs)));
    for_each_plane(parts * outs, team, [&](int64_t unit) {
      const int64_t part = unit / outs, out = unit % outs * size.chunks.columns;
      const int64_t begin = part * count / parts, rows = (part + 1) * count / parts - begin;
      const int64_t columns = std::min(size.chunks.columns, to.blocks - out);
      float* const u = of_threads + (thread + omp_get_thread_num()) * size.thread_floats();
      float* const m = u + size.filters.floats();
      for (int64_t in = 0; in < from.blocks; in += size.chunks.rows) {
        const int64_t inner = std::min(size.chunks.rows, from.blocks - in);
        for (int64_t i = 0; i < inner; ++i)
          for (int64_t o = 0; o < columns; ++o) {
            const int64_t stored =
                f.turned ? (in + i) * to.blocks + out + o : (out + o) * from.blocks + in + i;
            (f.turned ? loops.from_turned_filter : loops.from_filter)(
                f.weights + stored * 9 * lanes_ * lanes_,
                {u + size.filters.at(o, i * lanes_), size.filters.point_step()});
          }
        for (int64_t point = 0; point < points; ++point)
          loops.multiply(
              {v + size.pixels.at(in, begin) + point * size.pixels.point_step(), size.pixels.step()},
              {u + point * size.filters.point_step(), size.filters.step()},
              {m + point * size.results.point_step(), size.results.step()}, rows, inner, columns, in > 0);
      }
      const Range done{now.begin + begin, now.begin + begin + rows};
      for (int64_t o = 0; o < columns; ++o)
        loops.of<T>().to_results(planes(f.result, to, lanes_, out + o, to), done,
                                 {m + size.results.at(o, 0), size.results.point_step()},
                                 bias ? bias + (out + o) * lanes_ : nullptr);
    });
  };

  if (size.groups.alone)
    for_each_plane(size.groups.count, threads,
                   [&](int64_t group) { convolve_group(group, omp_get_thread_num()); });
  else
    convolve_group(0, 0);
}

template <class T>
void Winograd::forward(std::byte* workspace, int threads, const T* x, const float* weights, const float* bias,
                       T* y) const {
  const int64_t bytes = convolve_bytes(x_, y_, team(threads));
  for_each_group(workspace, bytes, threads, [&](int64_t group, std::byte* at, int team) {
    convolve<T>(at, team,
                {x_, y_, x + group * numbers_of_group(x_), weights + group * weights_of_group(),
                 bias ? bias + group * y_.channels : nullptr, y + group * numbers_of_group(y_), -before_.h,
                 -before_.w, false});
  });
}

template <class T>
void Winograd::backward_data(std::byte* workspace, int threads, const float* weights, const T* dy,
                             T* dx) const {
  const int64_t bytes = convolve_bytes(y_, x_, team(threads));
  for_each_group(workspace, bytes, threads, [&](int64_t group, std::byte* at, int team) {
    convolve<T>(at, team,
                {y_, x_, dy + group * numbers_of_group(y_), weights + group * weights_of_group(), nullptr,
                 dx + group * numbers_of_group(x_), before_.h - 2, before_.w - 2, true});
  });
}

template <class T>
void Winograd::backward_weights(std::byte* workspace, int threads, const T* x, const T* dy, float* dw,
                                Into into) const {
  for_each_group(workspace, correlate_bytes(team(threads)), threads,
                 [&](int64_t group, std::byte* at, int team) {
                   correlate(at, team, x + group * numbers_of_group(x_), dy + group * numbers_of_group(y_),
                             dw + group * weights_of_group(), into);
                 });
}

int64_t Winograd::correlate_bytes(int threads) const {
  return CorrelateSizes(tiles(y_), x_.blocks, y_.blocks, lanes_, threads).bytes(threads);
}

template <class T>
void Winograd::correlate(std::byte* workspace, int threads, const T* x, const T* dy, float* dw,
                         Into into) const {
  const WinogradLoops& loops = *loops_;
  const CorrelateSizes size(tiles(y_), x_.blocks, y_.blocks, lanes_, threads);
  const Groups& groups = size.groups;
  float* const of_groups = reinterpret_cast<float*>(workspace);
  float* const of_threads = of_groups + (groups.alone ? threads : 1) * size.group_floats();
  const int64_t ins = ceil_of(x_.blocks, size.chunks.rows), outs = ceil_of(y_.blocks, size.chunks.columns);
  const int team = groups.team(threads);
  const auto adds = [&](int64_t group) { return group > 0 || into == Into::accumulate; };

  const auto correlate_group = [&](int64_t group, int thread, float* sums, bool adds_to_them) {
    const Range now = groups[group];
    float* const v = of_groups + thread * size.group_floats();
    float* const m = v + size.pixels.floats();
    for_each_part(x_.blocks, now, team, [&](int64_t block, Range part) {
      loops.of<T>().from_pixels(
          planes(x, x_, lanes_, block, y_, -before_.h, -before_.w), part,
          {v + size.pixels.at(block, part.begin - now.begin), size.pixels.point_step()});
    });
    for_each_part(y_.blocks, now, team, [&](int64_t block, Range part) {
      loops.of<T>().from_gradient(
          planes(dy, y_, lanes_, block, y_), part,
          {m + size.gradients.at(block, part.begin - now.begin), size.gradients.point_step()});
    });
    for_each_plane(ins * outs, team, [&](int64_t unit) {
      const int64_t in = unit % ins * size.chunks.rows, out = unit / ins * size.chunks.columns;
      const int64_t rows = std::min(size.chunks.rows, x_.blocks - in);
      const int64_t columns = std::min(size.chunks.columns, y_.blocks - out);
      float* const u = of_threads + (thread + omp_get_thread_num()) * size.filters.floats();
      for (int64_t point = 0; point < points; ++point)
        loops.correlate(
            {v + size.pixels.at(in, 0) + point * size.pixels.point_step(), size.pixels.step()},
            {m + size.gradients.at(out, 0) + point * size.gradients.point_step(), size.gradients.step()},
            {u + point * size.filters.point_step(), size.filters.step()}, now.end - now.begin, rows, columns);
      for (int64_t o = 0; o < columns; ++o)
        for (int64_t i = 0; i < rows; ++i)
          loops.to_filter({u + size.filters.at(o, i * lanes_), size.filters.point_step()},
                          sums + ((out + o) * x_.blocks + in + i) * 9 * lanes_ * lanes_, adds_to_them);
    });
  };

  if (size.kept == 0)
    for (int64_t group = 0; group < groups.count; ++group) correlate_group(group, 0, dw, adds(group));
  for (int64_t first = 0; size.kept > 0 && first < groups.count; first += threads) {
    const int64_t end = std::min(groups.count, first + threads);
    const auto kept = [&](int64_t group) {
      return of_groups + (group - first + 1) * size.group_floats() - size.kept;
    };
    for_each_plane(end - first, threads,
                   [&](int64_t i) { correlate_group(first + i, int(i), kept(first + i), false); });
    for_each_range(size.kept, threads, [&](int64_t begin, int64_t last) {
      for (int64_t group = first; group < end; ++group)
        if (adds(group))
          accumulate(kept(group) + begin, dw + begin, last - begin);
        else
          std::copy(kept(group) + begin, kept(group) + last, dw + begin);
    });
  }
}

#define ANTICHAIN_OF(T)                                                                             \
  template void Winograd::forward(std::byte*, int, const T*, const float*, const float*, T*) const; \
  template void Winograd::backward_data(std::byte*, int, const float*, const T*, T*) const;         \
  template void Winograd::backward_weights(std::byte*, int, const T*, const T*, float*, Into) const;
ANTICHAIN_OF(float)
ANTICHAIN_OF(Bf16)
#undef ANTICHAIN_OF

}  // namespace antichain::cpu
