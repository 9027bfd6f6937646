#include "layers/cpu/narrow_groups.h"

#include <omp.h>

#include <algorithm>

#include "layers/cpu/activation.h"
#include "layers/cpu/dnnl.h"
#include "layers/cpu/narrow_group_loops.h"

namespace antichain::cpu {
namespace {

using namespace narrow;

// Returns a plane as float32: the plane itself, or a copy in `wide`.
const float* widened(const float* plane, int64_t, float*) { return plane; }
const float* widened(const Bf16* plane, int64_t count, float* wide) {
  for (int64_t i = 0; i < count; ++i) wide[i] = plane[i];
  return wide;
}

// Returns where a result is computed as float32; the next function stores it in its type.
float* result_in(float* plane, float*) { return plane; }
float* result_in(Bf16*, float* wide) { return wide; }
void hand_over(const float*, int64_t, float*) {}
void hand_over(const float* wide, int64_t count, Bf16* plane) {
  for (int64_t i = 0; i < count; ++i) plane[i] = Bf16(wide[i]);
}

// Calls visit(output, input, tap) for each of the packed numbers in turn. Forward, a lane is an output
// channel and j an input of its group. Transposed, a lane is an input channel and j an output.
template <class Visit>
void for_each_packed(int64_t blocks, int64_t lanes, int group, bool transposed, const Visit& visit) {
  for (int64_t block = 0; block < blocks; ++block)
    for (int tap = 0; tap < taps; ++tap)
      for (int j = 0; j < group; ++j)
        for (int mine = 0; mine < group; ++mine)
          for (int64_t first = block * lanes; first < (block + 1) * lanes; first += group)
            visit(first + (transposed ? j : mine), transposed ? mine : j, tap);
}

// Transposed weights have their taps in reverse.
void pack(const float* w, int64_t blocks, int64_t lanes, int group, bool transposed, float* out) {
  for_each_packed(blocks, lanes, group, transposed, [&](int64_t output, int input, int tap) {
    *out++ = w[(output * group + input) * taps + (transposed ? taps - 1 - tap : tap)];
  });
}

const Loops::OfGroup& loops_of(int group) {
  const Loops& loops = best_loops<Loops>();
  return group == 4 ? loops.of_4 : loops.of_8;
}

}  // namespace

std::optional<NarrowGroups> NarrowGroups::of(const Conv2d& op, const Shape& x, const Shape& y,
                                             Precision precision) {
  const Conv2dOptions& o = op.options;
  const int64_t group = x[1] / o.groups, lanes = best_loops<Loops>().lanes;
  const bool fits = (has_avx512() || has_avx2()) && o.groups > 1 && (group == 4 || group == 8) &&
                    y[1] == x[1] && x[1] % lanes == 0 && o.kernel == Extent(side) &&
                    o.stride.h == o.stride.w && o.stride.h <= 2 && o.pad == Padding(pad) &&
                    o.dilation == Extent(1) && !o.bias;
  if (!fits) return std::nullopt;
  NarrowGroups it;
  it.precision_ = precision;
  it.group_ = int(group);
  it.stride_ = int(o.stride.h);
  it.images_ = x[0];
  it.lanes_ = lanes;
  it.blocks_ = x[1] / lanes;
  it.height_ = x[2];
  it.width_ = x[3];
  it.y_height_ = y[2];
  it.y_width_ = y[3];
  return it;
}

int64_t NarrowGroups::packed_floats(int64_t blocks) const { return blocks * taps * group_ * lanes_; }

// A frame holds the image, or dy with its pixels `stride_` apart, which is no larger, and one row more.
int64_t NarrowGroups::frame_floats() const { return (height_ + 2 * pad + 1) * (width_ + 2 * pad) * lanes_; }

// An image and a result, side by side.
int64_t NarrowGroups::wide_floats() const {
  return precision_ == Precision::float32 ? 0 : (height_ * width_ + y_height_ * y_width_) * lanes_;
}

// The workspace holds packed weights, or sums of their gradients, and for each thread a frame and a widened
// plane.
int64_t NarrowGroups::workspace_bytes(int threads) const {
  return (packed_floats(blocks_) + threads * thread_floats()) * int64_t(sizeof(float));
}

float* NarrowGroups::frames_of_zeros(float* at, int threads) const {
  std::fill_n(at, threads * thread_floats(), 0.0f);
  return at;
}

template <class T>
void NarrowGroups::forward(Context& context, const T* x, const float* w, T* y) const {
  auto* packed = reinterpret_cast<float*>(context.workspace(workspace_bytes(context.threads())));
  float* const frames = frames_of_zeros(packed + packed_floats(blocks_), context.threads());
  pack(w, blocks_, lanes_, group_, false, packed);
  const auto convolve = loops_of(group_).forward[stride_ - 1];
  const int64_t x_plane = height_ * width_ * lanes_, y_plane = y_height_ * y_width_ * lanes_;
#pragma omp parallel for num_threads(context.threads()) schedule(static)
  for (int64_t plane = 0; plane < images_ * blocks_; ++plane) {
    float* const frame = frames + omp_get_thread_num() * thread_floats();
    float *wide_x = frame + frame_floats(), *result = result_in(y + plane * y_plane, wide_x + x_plane);
    convolve({widened(x + plane * x_plane, x_plane, wide_x), height_, width_},
             packed + packed_floats(plane % blocks_), frame, result, y_height_, y_width_);
    hand_over(result, y_plane, y + plane * y_plane);
  }
}

// The input gradient is a convolution of stride 1 over dy, whose pixels are as far apart as the windows were.
template <class T>
void NarrowGroups::backward_data(Context& context, const float* w, const T* dy, T* dx) const {
  auto* packed = reinterpret_cast<float*>(context.workspace(workspace_bytes(context.threads())));
  float* const frames = frames_of_zeros(packed + packed_floats(blocks_), context.threads());
  pack(w, blocks_, lanes_, group_, true, packed);
  const auto convolve = loops_of(group_).data[stride_ - 1];
  const int64_t x_plane = height_ * width_ * lanes_, y_plane = y_height_ * y_width_ * lanes_;
#pragma omp parallel for num_threads(context.threads()) schedule(static)
  for (int64_t plane = 0; plane < images_ * blocks_; ++plane) {
    float* const frame = frames + omp_get_thread_num() * thread_floats();
    float *wide_dy = frame + frame_floats(), *result = result_in(dx + plane * x_plane, wide_dy + y_plane);
    convolve({widened(dy + plane * y_plane, y_plane, wide_dy), y_height_, y_width_},
             packed + packed_floats(plane % blocks_), frame, result, height_, width_);
    hand_over(result, x_plane, dx + plane * x_plane);
  }
}

template <class T>
void NarrowGroups::backward_weights(Context& context, const T* x, const T* dy, float* dw, Into into) const {
  auto* sums = reinterpret_cast<float*>(context.workspace(workspace_bytes(context.threads())));
  float* const frames = frames_of_zeros(sums + packed_floats(blocks_), context.threads());
  const auto correlate = loops_of(group_).weights[stride_ - 1];
  const int64_t x_plane = height_ * width_ * lanes_, y_plane = y_height_ * y_width_ * lanes_;
  std::fill_n(sums, packed_floats(blocks_), 0.0f);
  for (int64_t n = 0; n < images_; ++n) {
#pragma omp parallel for num_threads(context.threads()) schedule(static)
    for (int64_t block = 0; block < blocks_; ++block) {
      const int64_t plane = n * blocks_ + block;
      float *frame = frames + omp_get_thread_num() * thread_floats(), *wide = frame + frame_floats();
      correlate({widened(x + plane * x_plane, x_plane, wide), height_, width_},
                {widened(dy + plane * y_plane, y_plane, wide + x_plane), y_height_, y_width_}, frame,
                sums + packed_floats(block));
    }
  }
  for_each_packed(blocks_, lanes_, group_, true, [&](int64_t output, int input, int tap) {
    float& to = dw[(output * group_ + input) * taps + tap];
    to = into == Into::overwrite ? *sums : to + *sums;
    ++sums;
  });
}

void NarrowGroups::forward(Context& context, const Forward& f) const {
  with_type(f.y.dtype(),
            [&]<class T>() { forward(context, f.x[0].data<T>(), f.params[0].data<float>(), f.y.data<T>()); });
}

void NarrowGroups::backward(Context& context, const Backward& b) const {
  with_type(b.dy.dtype(), [&]<class T>() {
    const T* dy = b.dy.data<T>();
    if (!b.dw.empty() && b.dw[0])
      backward_weights(context, b.x[0].data<T>(), dy, b.dw[0].data<float>(), b.into);
    if (!b.dx.empty() && b.dx[0]) backward_data(context, b.params[0].data<float>(), dy, b.dx[0].data<T>());
  });
}

}  // namespace antichain::cpu
