// Attention computes tiles of scores by oneDNN's products of matrices, and what is between the products by
// the loops of attention_loops. Tiles that a mask hides whole are left out.
//
// Forward gives each thread tiles of queries of one head, which pass over the keys. Backward gives it a head
// of keys with all heads of queries that share it: tiles of queries add to the gradients of all keys, one
// tile after the other. All sums are of one thread and in one order, so the number of threads changes no bit.
// Everything is float32 between loading and storing.
#include "layers/attention.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "framework/error.h"
#include "layers/cpu/activation.h"
#include "layers/cpu/attention_loops.h"
#include "layers/cpu/dnnl.h"
#include "layers/cpu/light_kernels.h"
#include "layers/cpu/philox_loops.h"

namespace antichain::cpu {
namespace {

constexpr int64_t tile =
    128;  // queries, and keys: the scores of a tile fit a second-level cache several times

struct Span {
  int64_t first, count;
  Span(int64_t number, int64_t all) : first(number * tile), count(std::min(tile, all - first)) {}
};

int64_t tiles_of(int64_t positions) { return (positions + tile - 1) / tile; }

// Positions of one head of a tensor: a row each, `width` numbers of which belong to the head.
template <class T>
struct HeadRows {
  T* at = nullptr;  // nullptr: a gradient that is not wanted
  int64_t row = 0;

  T* from(int64_t position) const { return at + position * row; }
};

// Says where the heads of queries, keys and values lie in an operator's tensors.
struct Places {
  AttentionSizes sizes;

  template <class T>
  HeadRows<T> queries(std::span<const Tensor> x, int64_t sample, int64_t head) const {
    return of<T>(x, 0, sizes.queries, sizes.heads, sample, head, 0);
  }
  template <class T>
  HeadRows<T> keys(std::span<const Tensor> x, int64_t sample, int64_t head) const {
    return of<T>(x, 1, sizes.keys, sizes.kv_heads, sample, head, sizes.heads);
  }
  template <class T>
  HeadRows<T> values(std::span<const Tensor> x, int64_t sample, int64_t head) const {
    return of<T>(x, 2, sizes.keys, sizes.kv_heads, sample, head, sizes.heads + sizes.kv_heads);
  }

 private:
  // `before`: heads before the first one, where all are in one tensor.
  template <class T>
  HeadRows<T> of(std::span<const Tensor> x, size_t input, int64_t positions, int64_t heads, int64_t sample,
                 int64_t head, int64_t before) const {
    const Tensor& tensor = x[sizes.packed ? 0 : input];
    if (!tensor) return {};
    const int64_t row = (sizes.packed ? sizes.heads + 2 * sizes.kv_heads : heads) * sizes.width;
    const int64_t of_row = (head + (sizes.packed ? before : 0)) * sizes.width;
    return {tensor.data<T>() + sample * positions * row + of_row, row};
  }
};

// A Matrix has rows of floats.
struct Matrix {
  float* at;
  int64_t row;
};

// c ← scale · a b + keep · c, or of the transposed factors: rows x inner times inner x columns.
void multiply(char transpose_a, char transpose_b, int64_t rows, int64_t columns, int64_t inner, float scale,
              const Matrix& a, const Matrix& b, float keep, const Matrix& c) {
  const auto status = dnnl::sgemm(transpose_a, transpose_b, rows, columns, inner, scale, a.at, a.row, b.at,
                                  b.row, keep, c.at, c.row);
  ANTICHAIN_CHECK(status == dnnl::status::success, "oneDNN multiplies two matrices");
}

// Hands out pieces of a thread's scratch; of nullptr it only counts them.
class Pieces {
 public:
  explicit Pieces(std::byte* at) : at_(at) {}
  template <class Number>
  Number* take(int64_t count) {
    std::byte* taken = at_ ? at_ + bytes_ : nullptr;
    bytes_ += Workspace::rounded(count * int64_t(sizeof(Number)));
    return reinterpret_cast<Number*>(taken);
  }
  int64_t bytes() const { return bytes_; }

 private:
  std::byte* at_;
  int64_t bytes_ = 0;
};

// A thread's scratch.
struct Room {
  float *scores, *gradients;           // of a tile
  uint32_t* words;                     // likewise
  float *q, *k, *v, *y, *dy, *mixed;   // rows of a tile
  float *dk, *dv;                      // of all keys
  float *most, *sum, *factor, *delta;  // a number for each query of a tile

  Room(Pieces& from, const AttentionSizes& s, bool drops) {
    for (float** place : {&scores, &gradients}) *place = from.take<float>(tile * tile);
    words = from.take<uint32_t>(drops ? tile * tile : 0);
    for (float** place : {&q, &k, &v, &y, &dy, &mixed}) *place = from.take<float>(tile * s.width);
    for (float** place : {&dk, &dv}) *place = from.take<float>(s.keys * s.width);
    for (float** place : {&most, &sum, &factor, &delta}) *place = from.take<float>(tile);
  }
};

int64_t room_bytes(const AttentionSizes& s, bool drops) {
  Pieces counted(nullptr);
  Room(counted, s, drops);
  return counted.bytes();
}

// Says what a tile's queries see of its keys.
enum class Sight { nothing, some, documents_alike };

// The numbers of a sample's documents; nullptr: all positions are of one.
struct Documents {
  const int32_t* at;

  Sight between(const Span& queries, const Span& keys) const {
    if (!at) return Sight::documents_alike;
    const auto [q, most_q] = std::minmax_element(at + queries.first, at + queries.first + queries.count);
    const auto [k, most_k] = std::minmax_element(at + keys.first, at + keys.first + keys.count);
    if (*most_q < std::max(*k, 0) || *most_k < std::max(*q, 0)) return Sight::nothing;
    return *q == *most_q && *k == *most_k ? Sight::documents_alike : Sight::some;
  }
};

// The parts of one call that are the same for all heads.
struct Call {
  DropoutMask::Draw draw;
  bool drops;
  const Tensor* documents;  // or nullptr
};

template <class T>
class AttentionKernel : public Kernel {
 public:
  AttentionKernel(const Attention& op, const AttentionSizes& sizes)
      : op_(op.options, op.node_name), s_(sizes), places_{sizes}, loops_(best_loops<AttentionLoops<T>>()) {}

  void forward(Context& context, const Forward& f) const override {
    const Call call = call_of(f.x, f.dropout, f.mode == Mode::train);
    const int64_t tiles = tiles_of(s_.queries);
    for_each_unit(context, s_.samples * s_.heads * tiles, [&](int64_t unit, Room& room) {
      const int64_t head = unit / tiles % s_.heads, sample = unit / tiles / s_.heads;
      const Span queries(unit % tiles, s_.queries);
      const HeadRows<const T> k = places_.keys<const T>(f.x, sample, of_keys(head));
      const HeadRows<const T> v = places_.values<const T>(f.x, sample, of_keys(head));
      const Matrix q = load(places_.queries<const T>(f.x, sample, head), queries, room.q);
      const Matrix mixed{room.mixed, s_.width};
      std::fill_n(mixed.at, queries.count * s_.width, 0.0f);
      std::fill_n(room.most, queries.count, std::numeric_limits<float>::lowest());
      std::fill_n(room.sum, queries.count, 0.0f);
      for_each_tile(call, sample, head, queries, room, q, k,
                    [&](const Span& keys, const ScoreTile& scores, const Matrix&) {
                      loops_.exponentials(scores, room.most, room.sum, mixed.at, s_.width);
                      multiply('N', 'N', queries.count, s_.width, keys.count, 1, {scores.at, tile},
                               load(v, keys, room.v), 1, mixed);
                    });
      for (int64_t i = 0; i < queries.count; ++i)  // a query that sees nothing gives 0
        room.factor[i] = (call.drops ? op_.kept_scale() : 1) * over(room.sum[i]);
      const HeadRows<T> y = rows_of_output<T>(f.y, sample, head);
      loops_.narrow(mixed.at, room.factor, queries.count, s_.width, y.from(queries.first), y.row);
      if (!f.stash.empty()) {
        float* kept = stashed(f.stash[0], sample, head) + queries.first;
        std::copy_n(room.most, queries.count, kept);
        std::copy_n(room.sum, queries.count, kept + of_plane());
      }
    });
  }

  void backward(Context& context, const Backward& b) const override {
    if (std::ranges::none_of(b.dx, [](const Tensor& t) { return bool(t); })) return;
    const Call call = call_of(b.x, b.dropout, true);
    for_each_unit(context, s_.samples * s_.kv_heads, [&](int64_t unit, Room& room) {
      const int64_t sample = unit / s_.kv_heads, kv_head = unit % s_.kv_heads;
      const HeadRows<T> dk = places_.keys<T>(b.dx, sample, kv_head);
      const HeadRows<T> dv = places_.values<T>(b.dx, sample, kv_head);
      std::fill_n(room.dk, s_.keys * s_.width, 0.0f);
      std::fill_n(room.dv, s_.keys * s_.width, 0.0f);
      for (int64_t head = kv_head * s_.group(); head < (kv_head + 1) * s_.group(); ++head)
        for (int64_t i = 0; i < tiles_of(s_.queries); ++i)
          backward(b, call, sample, head, Span(i, s_.queries), room, bool(dk.at), bool(dv.at));
      if (dk.at) loops_.narrow(room.dk, nullptr, s_.keys, s_.width, dk.at, dk.row);
      if (dv.at) loops_.narrow(room.dv, nullptr, s_.keys, s_.width, dv.at, dv.row);
    });
  }

 private:
  // Adds the terms of a tile of queries to the gradients of keys and values, and computes those of queries.
  void backward(const Backward& b, const Call& call, int64_t sample, int64_t head, const Span& queries,
                Room& room, bool wants_dk, bool wants_dv) const {
    const HeadRows<const T> k = places_.keys<const T>(b.x, sample, of_keys(head));
    const HeadRows<const T> v = places_.values<const T>(b.x, sample, of_keys(head));
    const HeadRows<T> dq = places_.queries<T>(b.dx, sample, head);
    const Matrix q = load(places_.queries<const T>(b.x, sample, head), queries, room.q);
    widen(rows_of_output<const T>(b.dy, sample, head), queries, room.dy);
    widen(rows_of_output<const T>(b.y, sample, head), queries, room.y);
    loops_.dots(room.dy, room.y, queries.count, s_.width, room.delta);
    const Matrix dy{room.dy, s_.width}, mixed{room.mixed, s_.width};
    const float* most = stashed(b.stash[0], sample, head) + queries.first;
    std::transform(most + of_plane(), most + of_plane() + queries.count, room.factor, over);
    std::fill_n(mixed.at, queries.count * s_.width, 0.0f);
    for_each_tile(
        call, sample, head, queries, room, q, k,
        [&](const Span& keys, const ScoreTile& scores, const Matrix& k_rows) {
          const bool of_scores = wants_dk || dq.at;
          const Matrix gradients{room.gradients, tile}, probabilities{scores.at, tile};
          if (of_scores)
            multiply('N', 'T', queries.count, keys.count, s_.width, 1, dy, load(v, keys, room.v), 0,
                     gradients);
          loops_.gradients(scores, most, room.factor, room.delta, of_scores ? gradients.at : nullptr);
          const auto of_all = [&](float* at) { return Matrix{at + keys.first * s_.width, s_.width}; };
          if (wants_dv)
            multiply('T', 'N', keys.count, s_.width, queries.count, 1, probabilities, dy, 1, of_all(room.dv));
          if (wants_dk)
            multiply('T', 'N', keys.count, s_.width, queries.count, s_.scale, gradients, q, 1,
                     of_all(room.dk));
          if (dq.at)
            multiply('N', 'N', queries.count, s_.width, keys.count, s_.scale, gradients, k_rows, 1, mixed);
        });
    if (dq.at) loops_.narrow(mixed.at, nullptr, queries.count, s_.width, dq.from(queries.first), dq.row);
  }

  Call call_of(std::span<const Tensor> x, const DropoutKey& key, bool trains) const {
    return {op_.draw(key), trains && op_.options.dropout > 0, s_.documents ? &x.back() : nullptr};
  }

  // Calls f(unit, room) for each unit, on the threads of the context.
  template <class F>
  void for_each_unit(Context& context, int64_t units, const F& f) const {
    const bool drops = op_.options.dropout > 0;
    const int64_t bytes = room_bytes(s_, drops);
    std::byte* scratch = context.workspace(context.threads() * bytes);
    for_each_plane(units, context.threads(), [&](int64_t unit) {
      Pieces pieces(scratch + omp_get_thread_num() * bytes);
      Room room(pieces, s_, drops);
      f(unit, room);
    });
  }

  // Calls f(keys, scores, rows of keys) for each tile of keys of which these queries see something.
  template <class F>
  void for_each_tile(const Call& call, int64_t sample, int64_t head, const Span& queries, Room& room,
                     const Matrix& q, const HeadRows<const T>& k, const F& f) const {
    const Documents documents{call.documents ? call.documents->data<int32_t>() + sample * s_.keys : nullptr};
    Span places = queries;
    places.first += s_.earlier();
    const int64_t end = s_.most_keys(op_.options.causal, queries.first + queries.count - 1);
    for (int64_t j = 0; j < tiles_of(end); ++j) {
      const Span keys(j, s_.keys);
      const Sight sight = documents.between(places, keys);
      if (sight == Sight::nothing) continue;
      const Matrix k_rows = load(k, keys, room.k);
      multiply('N', 'T', queries.count, keys.count, s_.width, s_.scale, q, k_rows, 0, {room.scores, tile});
      const ScoreTile scores{.at = room.scores,
                             .row = tile,
                             .rows = queries.count,
                             .columns = keys.count,
                             .first_row_sees = s_.most_keys(true, queries.first) - keys.first,
                             .causal = op_.options.causal,
                             .words = call.drops ? room.words : nullptr,
                             .threshold = call.draw.threshold(),
                             .kept_scale = op_.kept_scale()};
      if (sight == Sight::some) loops_.part(scores, documents.at + places.first, documents.at + keys.first);
      if (call.drops) draw(call, sample, head, queries, keys, room.words);
      f(keys, scores, k_rows);
    }
  }

  void draw(const Call& call, int64_t sample, int64_t head, const Span& queries, const Span& keys,
            uint32_t* words) const {
    for (int64_t i = 0; i < queries.count; ++i)
      draw_words(call.draw, sample, (s_.mask_element(head, queries.first + i) + keys.first) / 4,
                 (keys.count + 3) / 4, words + i * tile);
  }

  Matrix load(const HeadRows<const T>& rows, const Span& span, float* room) const {
    widen(rows, span, room);
    return {room, s_.width};
  }
  void widen(const HeadRows<const T>& rows, const Span& span, float* room) const {
    loops_.widen(rows.from(span.first), rows.row, span.count, s_.width, room);
  }

  template <class U>
  HeadRows<U> rows_of_output(const Tensor& y, int64_t sample, int64_t head) const {
    const int64_t row = s_.heads * s_.width;
    return {y.data<U>() + sample * s_.queries * row + head * s_.width, row};
  }

  int64_t of_keys(int64_t head) const { return head / s_.group(); }
  // The stash has the largest scores of all queries, and behind them the sums of their exponentials.
  int64_t of_plane() const { return s_.samples * s_.heads * s_.queries; }
  float* stashed(const Tensor& stash, int64_t sample, int64_t head) const {
    return stash.data<float>() + (sample * s_.heads + head) * s_.queries;
  }
  static float over(float sum) { return sum == 0 ? 0 : 1 / sum; }

  const Attention op_;
  const AttentionSizes s_;
  const Places places_;
  const AttentionLoops<T>& loops_;
};

Lowering lower(const Op& op, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
  const auto& attention = dynamic_cast<const Attention&>(op);
  const AttentionSizes s = attention.sizes(x);
  return {.x = std::vector<Layout>(x.size(), Layout::plain),
          .precision = precision,
          .stash = {{.shape = {2, s.samples * s.heads, s.queries}}},
          .keeps_x = true,
          .keeps_y = true,
          .workspace_bytes = omp_get_max_threads() * room_bytes(s, attention.options.dropout > 0)};
}

}  // namespace

KernelEntry attention_entry() {
  return {.lower = lower, .make = [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
            const auto& attention = dynamic_cast<const Attention&>(op);
            std::vector<Shape> shapes;
            for (const TensorSpec& spec : x) shapes.push_back(spec.shape);
            return make_typed<AttentionKernel>(x[0].dtype, attention, attention.sizes(shapes));
          }};
}

}  // namespace antichain::cpu
