// Attention computes tiles of 32 queries x 32 keys in a block's shared memory: scores, exponentials relative
// to the largest score so far, and from these 32 channels of y. Backward computes the tiles twice again, once
// for the gradients of queries and once for those of keys and values, so each number is the sum of one block,
// in one order. Tiles that a causal mask hides are left out.
//
// Every sum over channels, keys or queries has chains of 16 terms in float32, which are added up in double.
// Blocks of one tile that compute other channels compute its scores again.
#include "layers/attention.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "framework/cuda/product.h"
#include "layers/cuda/activation_formulas.h"
#include "layers/cuda/operators.h"
#include "layers/cuda/row_sums.h"
#include "layers/cuda/scratch.h"
#include "layers/cuda/sums.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

constexpr float lowest = -3.4028235e38f;

// Rows of a tensor, one for each position: head h has the channels from first + h · width on.
template <class T>
struct HeadRows {
  T* at = nullptr;  // nullptr: a gradient that is not wanted
  Index positions = 0, row = 0, first = 0;

  ANTICHAIN_ANYWHERE T& operator()(Index sample, Index position, Index channel) const {
    return at[(sample * positions + position) * row + first + channel];
  }
};

// The numbers that a head's queries have in forward, and the sums δ of backward, which come by position.
struct QueryNumbers {
  float *most, *sum;
  const float* delta;
};

template <class T>
struct AttentionArguments {
  HeadRows<const T> q, k, v, dy;
  HeadRows<T> y, dq, dk, dv;
  const int32_t* documents;  // nullptr: all positions are of one
  QueryNumbers numbers;
  DropoutMask::Draw draw;
  Index heads, group, width, earlier, mask_row;  // as in AttentionSizes
  float scale, kept_scale;
  bool causal, drops;

  ANTICHAIN_ANYWHERE bool sees(Index sample, Index i, Index j) const {
    if (i >= q.positions || j >= k.positions || (causal && j > i + earlier)) return false;
    if (!documents) return true;
    const int32_t* of_sample = documents + sample * k.positions;
    return of_sample[j] >= 0 && of_sample[j] == of_sample[i + earlier];
  }
  // Returns the end of the keys that the queries of a tile see.
  ANTICHAIN_ANYWHERE Index end_of_keys(Index first_query) const {
    const Index end = first_query + tile + earlier;
    return causal && end < k.positions ? end : k.positions;
  }
  // Returns the first query that sees a key.
  ANTICHAIN_ANYWHERE Index first_query(Index key) const {
    return causal && key > earlier ? key - earlier : 0;
  }
  ANTICHAIN_ANYWHERE Index place(Index sample, Index head, Index i) const {
    return (sample * heads + head) * q.positions + i;
  }
};

// A block's shared memory.
struct TileMemory {
  using Floats = float[tile][tile + 1];
  using Doubles = double[tile][tile + 1];
  Floats a, b;                // factors of a product
  Doubles scores, gradients;  // of a tile
  Doubles first, second;      // what the block computes
  float most[tile], sum[tile], factor[tile];
};

// What a block computes: a tile of queries or keys, and 32 channels.
struct BlockPlace {
  Index sample, head, begin, channel;
};

// The functions below are a block's work. `each` calls a function with both numbers of every thread of the
// block, and lets none go on before all have done it.

template <class Each, class T>
ANTICHAIN_DEVICE void load(const Each& each, TileMemory::Floats& to, const HeadRows<const T>& from,
                           Index sample, Index begin, Index head, Index channel, Index width) {
  each([&](Index x, Index y) {
    for (Index i = y; i < tile; i += side)
      for (Index j = x; j < tile; j += side) {
        const bool inside = begin + i < from.positions && channel + j < width;
        to[i][j] = inside ? float(from(sample, begin + i, head * width + channel + j)) : 0.0f;
      }
  });
}

template <class Each>
ANTICHAIN_DEVICE void clear(const Each& each, TileMemory::Doubles& to) {
  each([&](Index x, Index y) {
    for (Index i = y; i < tile; i += side)
      for (Index j = x; j < tile; j += side) to[i][j] = 0;
  });
}

// to += a b, or of the transposed factors.
template <bool transpose_a, bool transpose_b, class Each>
ANTICHAIN_DEVICE void add_product(const Each& each, const TileMemory::Floats& a, const TileMemory::Floats& b,
                                  TileMemory::Doubles& to) {
  each([&](Index x, Index y) {
    for (Index i = y; i < tile; i += side)
      for (Index j = x; j < tile; j += side)
        for (Index begin = 0; begin < tile; begin += chain) {
          float sum = 0;
          ANTICHAIN_UNROLL
          for (Index k = begin; k < begin + chain; ++k)
            sum += (transpose_a ? a[k][i] : a[i][k]) * (transpose_b ? b[j][k] : b[k][j]);
          to[i][j] += double(sum);
        }
  });
}

// Computes the products of all channels of two tiles of rows.
template <class Each, class T>
ANTICHAIN_DEVICE void add_rows(const Each& each, TileMemory& s, const HeadRows<const T>& a, Index a_begin,
                               Index a_head, const HeadRows<const T>& b, Index b_begin, Index b_head,
                               Index sample, Index width, TileMemory::Doubles& to) {
  clear(each, to);
  for (Index channel = 0; channel < width; channel += tile) {
    load(each, s.a, a, sample, a_begin, a_head, channel, width);
    load(each, s.b, b, sample, b_begin, b_head, channel, width);
    add_product<false, true>(each, s.a, s.b, to);
  }
}

// Returns what a probability is multiplied by: 1, or by dropout 0 or kept_scale.
template <class T>
ANTICHAIN_DEVICE float kept(const AttentionArguments<T>& of, const DropoutMask::Draw& draw, Index sample,
                            Index head, Index i, Index j) {
  if (!of.drops) return 1;
  const int64_t row = int64_t(head * of.q.positions + i) * of.mask_row;
  return draw.kept(sample, row + j) ? of.kept_scale : 0.0f;
}

// Turns scores into exponentials relative to the largest of the row so far, in s.a; some are dropped there.
template <class Each, class T>
ANTICHAIN_DEVICE void take_exponentials(const Each& each, TileMemory& s, const AttentionArguments<T>& of,
                                        const DropoutMask::Draw& draw, const BlockPlace& p, Index keys) {
  each([&](Index x, Index y) {
    const Index i = y * side + x;  // a thread takes a row
    if (i >= tile) return;
    float most = s.most[i];
    for (Index j = 0; j < tile; ++j) {
      const float score = float(s.scores[i][j]) * of.scale;
      if (of.sees(p.sample, p.begin + i, keys + j) && score > most) most = score;
    }
    double sum = 0;
    for (Index begin = 0; begin < tile; begin += chain) {
      float part = 0;
      for (Index j = begin; j < begin + chain; ++j) {
        const bool seen = of.sees(p.sample, p.begin + i, keys + j);
        const float score = float(s.scores[i][j]) * of.scale;
        const float e = seen ? formulas::exp_of_negative(score - most) : 0.0f;
        part += e;
        s.a[i][j] = e > 0 ? e * kept(of, draw, p.sample, p.head, p.begin + i, keys + j) : e;
      }
      sum += double(part);
    }
    s.factor[i] = formulas::exp_of_negative(s.most[i] - most);
    s.sum[i] = float(double(s.sum[i] * s.factor[i]) + sum);
    s.most[i] = most;
  });
}

template <class Each, class T>
ANTICHAIN_DEVICE void attend(const Each& each, TileMemory& s, const AttentionArguments<T>& of,
                             const BlockPlace& p) {
  const DropoutMask::Draw draw = of.draw.now();
  const Index kv_head = p.head / of.group;
  clear(each, s.first);
  each([&](Index x, Index y) {
    if (y < 2) s.most[y * side + x] = lowest, s.sum[y * side + x] = 0;
  });
  for (Index keys = 0; keys < of.end_of_keys(p.begin); keys += tile) {
    add_rows(each, s, of.q, p.begin, p.head, of.k, keys, kv_head, p.sample, of.width, s.scores);
    take_exponentials(each, s, of, draw, p, keys);
    load(each, s.b, of.v, p.sample, keys, kv_head, p.channel, of.width);
    each([&](Index x, Index y) {
      for (Index i = y; i < tile; i += side)
        for (Index j = x; j < tile; j += side) s.first[i][j] *= double(s.factor[i]);
    });
    add_product<false, false>(each, s.a, s.b, s.first);
  }
  each([&](Index x, Index y) {
    for (Index i = y; i < tile && p.begin + i < of.q.positions; i += side) {
      const double sum = double(s.sum[i]);
      for (Index j = x; j < tile && p.channel + j < of.width; j += side)
        of.y(p.sample, p.begin + i, p.head * of.width + p.channel + j) =
            T(float(sum == 0 ? 0 : s.first[i][j] / sum));
      const Index place = of.place(p.sample, p.head, p.begin + i);
      if (x == 0 && p.channel == 0 && of.numbers.most)
        of.numbers.most[place] = s.most[i], of.numbers.sum[place] = s.sum[i];
    }
  });
}

// Computes the probabilities of a tile, some dropped, in s.a, and the gradients of scores in s.gradients.
template <class Each, class T>
ANTICHAIN_DEVICE void take_gradients(const Each& each, TileMemory& s, const AttentionArguments<T>& of,
                                     const DropoutMask::Draw& draw, Index sample, Index head, Index queries,
                                     Index keys) {
  const Index kv_head = head / of.group;
  add_rows(each, s, of.q, queries, head, of.k, keys, kv_head, sample, of.width, s.scores);
  add_rows(each, s, of.dy, queries, head, of.v, keys, kv_head, sample, of.width, s.gradients);
  each([&](Index x, Index y) {
    for (Index i = y; i < tile; i += side)
      for (Index j = x; j < tile; j += side) {
        const Index query = queries + i;
        float p = 0, gradient = 0;
        if (of.sees(sample, query, keys + j)) {
          const Index place = of.place(sample, head, query);
          const float score = float(s.scores[i][j]) * of.scale,
                      keeps = kept(of, draw, sample, head, query, keys + j);
          const float probability =
              formulas::exp_of_negative(score - of.numbers.most[place]) / of.numbers.sum[place];
          const float delta = of.numbers.delta[(sample * of.q.positions + query) * of.heads + head];
          gradient = probability * (float(s.gradients[i][j]) * keeps - delta);
          p = probability * keeps;
        }
        s.a[i][j] = p;
        s.gradients[i][j] = double(gradient);
      }
  });
}

template <class Each>
ANTICHAIN_DEVICE void take_factor(const Each& each, TileMemory& s) {
  each([&](Index x, Index y) {
    for (Index i = y; i < tile; i += side)
      for (Index j = x; j < tile; j += side) s.a[i][j] = float(s.gradients[i][j]);
  });
}

template <class Each, class T>
ANTICHAIN_DEVICE void store(const Each& each, const TileMemory::Doubles& from, const HeadRows<T>& to,
                            const BlockPlace& p, Index width, float scale) {
  if (!to.at) return;
  each([&](Index x, Index y) {
    for (Index i = y; i < tile && p.begin + i < to.positions; i += side)
      for (Index j = x; j < tile && p.channel + j < width; j += side)
        to(p.sample, p.begin + i, p.head * width + p.channel + j) = T(float(from[i][j] * double(scale)));
  });
}

template <class Each, class T>
ANTICHAIN_DEVICE void take_query_gradient(const Each& each, TileMemory& s, const AttentionArguments<T>& of,
                                          const BlockPlace& p) {
  const DropoutMask::Draw draw = of.draw.now();
  clear(each, s.first);
  for (Index keys = 0; keys < of.end_of_keys(p.begin); keys += tile) {
    take_gradients(each, s, of, draw, p.sample, p.head, p.begin, keys);
    take_factor(each, s);
    load(each, s.b, of.k, p.sample, keys, p.head / of.group, p.channel, of.width);
    add_product<false, false>(each, s.a, s.b, s.first);
  }
  store(each, s.first, of.dq, p, of.width, of.scale);
}

// p.head is one of keys.
template <class Each, class T>
ANTICHAIN_DEVICE void take_key_gradients(const Each& each, TileMemory& s, const AttentionArguments<T>& of,
                                         const BlockPlace& p) {
  const DropoutMask::Draw draw = of.draw.now();
  clear(each, s.first);
  clear(each, s.second);
  for (Index head = p.head * of.group; head < (p.head + 1) * of.group; ++head)
    for (Index queries = of.first_query(p.begin) / tile * tile; queries < of.q.positions; queries += tile) {
      take_gradients(each, s, of, draw, p.sample, head, queries, p.begin);
      load(each, s.b, of.dy, p.sample, queries, head, p.channel, of.width);
      add_product<true, false>(each, s.a, s.b, s.first);
      take_factor(each, s);
      load(each, s.b, of.q, p.sample, queries, head, p.channel, of.width);
      add_product<true, false>(each, s.a, s.b, s.second);
    }
  store(each, s.first, of.dv, p, of.width, 1);
  store(each, s.second, of.dk, p, of.width, of.scale);
}

enum class Work { attend, query_gradient, key_gradients };

template <Work work, class Each, class T>
ANTICHAIN_DEVICE void do_work(const Each& each, TileMemory& s, const AttentionArguments<T>& of,
                              const BlockPlace& p) {
  if constexpr (work == Work::attend) attend(each, s, of, p);
  if constexpr (work == Work::query_gradient) take_query_gradient(each, s, of, p);
  if constexpr (work == Work::key_gradients) take_key_gradients(each, s, of, p);
}

struct TileGrid {
  Index tiles, chunks, heads, samples;  // chunks: of 32 channels
};

#ifdef ANTICHAIN_LAUNCHES

struct EachThread {
  template <class F>
  ANTICHAIN_DEVICE void operator()(const F& f) const {
    f(threadIdx.x, threadIdx.y);
    __syncthreads();
  }
};

template <Work work, class T>
__global__ void __launch_bounds__(side* side) run_work(const TileGrid grid, const AttentionArguments<T> of) {
  __shared__ TileMemory shared;
  const Index chunk = blockIdx.x % grid.chunks, begin = blockIdx.x / grid.chunks * tile;
  for (Index sample = blockIdx.z; sample < grid.samples; sample += gridDim.z)
    do_work<work>(EachThread{}, shared, of, {sample, blockIdx.y, begin, chunk * tile});
}

template <Work work, class T>
void run(Stream stream, const TileGrid& grid, const AttentionArguments<T>& of) {
  constexpr Index most_layers = 65535;  // of a grid
  launch(run_work<work, T>, dim3(grid.tiles * grid.chunks, grid.heads, std::min(grid.samples, most_layers)),
         dim3(side, side), stream, grid, of);
}

#else

struct EachInTurn {
  template <class F>
  void operator()(const F& f) const {
    for (Index y = 0; y < side; ++y)
      for (Index x = 0; x < side; ++x) f(x, y);
  }
};

template <Work work, class T>
void run(Stream, const TileGrid& grid, const AttentionArguments<T>& of) {
  const auto shared = std::make_unique<TileMemory>();
  for (Index sample = 0; sample < grid.samples; ++sample)
    for (Index head = 0; head < grid.heads; ++head)
      for (Index begin = 0; begin < grid.tiles; ++begin)
        for (Index chunk = 0; chunk < grid.chunks; ++chunk)
          do_work<work>(EachInTurn{}, *shared, of, {sample, head, begin * tile, chunk * tile});
}

#endif

// Computes δ = dy · y of each head of each position.
template <class T>
void take_delta(Stream stream, const AttentionSizes& s, const T* y, const T* dy, float* delta) {
  sum_rows<SumRun>(
      stream, s.samples * s.queries * s.heads, s.width,
      [=] ANTICHAIN_DEVICE(SumRun & run, bool, float a, float b) { run.part += a * b; },
      [=] ANTICHAIN_DEVICE(Index r, const Sum& all) { delta[r] = float(all.value); }, read(y), read(dy));
}

int64_t workspace_bytes(const AttentionSizes& s) {
  return Scratch::rounded(s.samples * s.queries * s.heads * int64_t(sizeof(float)));
}

template <class T>
class AttentionKernel : public Kernel {
 public:
  AttentionKernel(const Attention& op, const AttentionSizes& sizes)
      : op_(op.options, op.node_name), s_(sizes) {
    index_of(s_.samples * s_.queries * packed_row());
    index_of(s_.samples * s_.keys * packed_row());
    index_of(s_.samples * s_.heads * s_.queries);
  }

  void forward(Context& context, const Forward& f) const override {
    AttentionArguments<T> of = arguments(f.x, f.dropout, f.mode == Mode::train);
    of.y = rows_of_output(f.y.data<T>());
    if (!f.stash.empty()) put_stash(of, f.stash[0]);
    run<Work::attend>(stream_of(context), grid(s_.queries, s_.heads), of);
  }

  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty()) return;
    AttentionArguments<T> of = arguments(b.x, b.dropout, true);
    of.dy = rows_of_output(static_cast<const T*>(b.dy.data<T>()));
    put_stash(of, b.stash[0]);
    of.dq = rows<T>(b.dx, 0, 0), of.dk = rows<T>(b.dx, 1, 1), of.dv = rows<T>(b.dx, 2, 2);
    if (!of.dq.at && !of.dk.at && !of.dv.at) return;
    const Stream stream = stream_of(context);
    Scratch scratch(context, workspace_bytes(s_));
    auto* delta = scratch.take<float>(s_.samples * s_.queries * s_.heads);
    take_delta<T>(stream, s_, b.y.data<T>(), b.dy.data<T>(), delta);
    of.numbers.delta = delta;
    if (of.dq.at) run<Work::query_gradient>(stream, grid(s_.queries, s_.heads), of);
    if (of.dk.at || of.dv.at) run<Work::key_gradients>(stream, grid(s_.keys, s_.kv_heads), of);
  }

 private:
  int64_t packed_row() const { return (s_.heads + 2 * s_.kv_heads) * s_.width; }

  // Returns where queries (0), keys (1) or values (2) are among the tensors.
  template <class U>
  HeadRows<U> rows(std::span<const Tensor> x, size_t input, int part) const {
    const Tensor& tensor = x[s_.packed ? 0 : input];
    if (!tensor) return {};
    const int64_t heads[] = {s_.heads, s_.kv_heads, s_.kv_heads};
    const int64_t before[] = {0, s_.heads, s_.heads + s_.kv_heads};
    return {tensor.data<U>(), Index(part == 0 ? s_.queries : s_.keys),
            Index(s_.packed ? packed_row() : heads[part] * s_.width),
            Index(s_.packed ? before[part] * s_.width : 0)};
  }
  template <class U>
  HeadRows<U> rows_of_output(U* at) const {
    return {at, Index(s_.queries), Index(s_.heads * s_.width), 0};
  }

  AttentionArguments<T> arguments(std::span<const Tensor> x, const DropoutKey& key, bool trains) const {
    return {.q = rows<const T>(x, 0, 0),
            .k = rows<const T>(x, 1, 1),
            .v = rows<const T>(x, 2, 2),
            .dy = {},
            .y = {},
            .dq = {},
            .dk = {},
            .dv = {},
            .documents = s_.documents ? x.back().data<int32_t>() : nullptr,
            .numbers = {},
            .draw = op_.draw(key),
            .heads = Index(s_.heads),
            .group = Index(s_.group()),
            .width = Index(s_.width),
            .earlier = Index(op_.options.causal || s_.documents ? s_.earlier() : 0),
            .mask_row = Index(s_.mask_row()),
            .scale = s_.scale,
            .kept_scale = op_.kept_scale(),
            .causal = op_.options.causal,
            .drops = trains && op_.options.dropout > 0};
  }
  void put_stash(AttentionArguments<T>& of, const Tensor& stash) const {
    of.numbers.most = stash.data<float>();
    of.numbers.sum = of.numbers.most + s_.samples * s_.heads * s_.queries;
  }

  TileGrid grid(int64_t positions, int64_t heads) const {
    const auto tiles = [](int64_t count) { return Index((count + tile - 1) / tile); };
    return {tiles(positions), tiles(s_.width), Index(heads), Index(s_.samples)};
  }

  const Attention op_;
  const AttentionSizes s_;
};

Lowering lower_attention(const Op& op, std::span<const Shape> x, std::span<const Layout>,
                         Precision precision) {
  const AttentionSizes s = dynamic_cast<const Attention&>(op).sizes(x);
  return {.x = std::vector<Layout>(x.size(), Layout::plain),
          .precision = precision,
          .stash = {{.shape = {2, s.samples * s.heads, s.queries}}},  // largest scores, sums of exponentials
          .keeps_x = true,
          .keeps_y = true,
          .workspace_bytes = workspace_bytes(s)};
}

}  // namespace

KernelEntry attention_entry() {
  return {.lower = lower_attention, .make = [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
            const auto& attention = dynamic_cast<const Attention&>(op);
            std::vector<Shape> shapes;
            for (const TensorSpec& spec : x) shapes.push_back(spec.shape);
            return make_typed<AttentionKernel>(x[0].dtype, attention, attention.sizes(shapes));
          }};
}

}  // namespace antichain::cuda
