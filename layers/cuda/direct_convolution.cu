// Computes a convolution directly by its formula, a thread per element of the result, where no library engine
// is deterministic and exact. Chains of float32 run over the channels of one group or the pixels of one row;
// they are summed in double.
#include "layers/cuda/convolution.h"
#include "layers/cuda/image.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

struct Sizes {
  Image x, y, weight;  // weight: K "images" of R x S pixels and C/groups "channels"
  int stride_h, stride_w, dilation_h, dilation_w, pad_h, pad_w;  // the padding before the image
  Index group_in, group_out;                                     // channels of a group

  explicit Sizes(const Convolution& c)
      : x(c.x),
        y(c.y),
        weight(c.weight),
        stride_h(c.stride.h),
        stride_w(c.stride.w),
        dilation_h(c.dilation.h),
        dilation_w(c.dilation.w),
        pad_h(c.pad.before.h),
        pad_w(c.pad.before.w),
        group_in(index_of(c.weight[1])),
        group_out(index_of(c.weight[0] / c.groups)) {}

  // Returns the row of x under row r of the kernel at output row p; it is negative or beyond the image in the
  // padding.
  ANTICHAIN_ANYWHERE int row(Index p, Index r) const {
    return int(p) * stride_h - pad_h + int(r) * dilation_h;
  }
  ANTICHAIN_ANYWHERE int column(Index q, Index s) const {
    return int(q) * stride_w - pad_w + int(s) * dilation_w;
  }
  ANTICHAIN_ANYWHERE static bool inside(int at, Index extent) { return at >= 0 && at < int(extent); }
  // Returns the output along one side that has pixel `at` under the tap that lies `tap` pixels behind the
  // kernel's first one; −1 where there is none.
  ANTICHAIN_ANYWHERE static int output(Index at, int pad, int tap, int stride, Index extent) {
    const int start = int(at) + pad - tap;
    return start >= 0 && start % stride == 0 && start / stride < int(extent) ? start / stride : -1;
  }
};

template <class T>
void forward(Stream stream, const Sizes& s, const T* x, const T* weight, T* y) {
  for_each(stream, s.y.elements(), [=] ANTICHAIN_DEVICE(Index i) {
    const Index k = s.y.channel(i), first = k / s.group_out * s.group_in;
    double sum = 0;
    for (Index r = 0; r < s.weight.height; ++r)
      for (Index c = 0; c < s.weight.width; ++c) {
        const int row = s.row(s.y.row(i), r), column = s.column(s.y.column(i), c);
        if (!s.inside(row, s.x.height) || !s.inside(column, s.x.width)) continue;
        const T* pixel = x + s.x.at(s.y.image(i), Index(row), Index(column), first);
        const T* filter = weight + s.weight.at(k, r, c, 0);
        float part = 0;
        for (Index j = 0; j < s.group_in; ++j) part += float(pixel[j]) * float(filter[j]);
        sum += double(part);
      }
    y[i] = T(float(sum));
  });
}

template <class T>
void input_gradient(Stream stream, const Sizes& s, const T* weight, const T* dy, T* dx) {
  for_each(stream, s.x.elements(), [=] ANTICHAIN_DEVICE(Index i) {
    const Index channel = s.x.channel(i), group = channel / s.group_in, j = channel % s.group_in;
    double sum = 0;
    for (Index r = 0; r < s.weight.height; ++r)
      for (Index c = 0; c < s.weight.width; ++c) {
        const int p = s.output(s.x.row(i), s.pad_h, int(r) * s.dilation_h, s.stride_h, s.y.height);
        const int q = s.output(s.x.column(i), s.pad_w, int(c) * s.dilation_w, s.stride_w, s.y.width);
        if (p < 0 || q < 0) continue;
        const T* pixel = dy + s.y.at(s.x.image(i), Index(p), Index(q), group * s.group_out);
        float part = 0;
        for (Index k = 0; k < s.group_out; ++k)
          part += float(pixel[k]) * float(weight[s.weight.at(group * s.group_out + k, r, c, j)]);
        sum += double(part);
      }
    dx[i] = T(float(sum));
  });
}

template <class T>
void weight_gradient(Stream stream, const Sizes& s, const T* x, const T* dy, float* dw) {
  for_each(stream, s.weight.elements(), [=] ANTICHAIN_DEVICE(Index i) {
    const Index k = s.weight.image(i), r = s.weight.row(i), c = s.weight.column(i);
    const Index channel = k / s.group_out * s.group_in + s.weight.channel(i);
    double sum = 0;
    for (Index n = 0; n < s.x.images; ++n)
      for (Index p = 0; p < s.y.height; ++p) {
        const int row = s.row(p, r);
        if (!s.inside(row, s.x.height)) continue;
        float part = 0;
        for (Index q = 0; q < s.y.width; ++q) {
          const int column = s.column(q, c);
          if (s.inside(column, s.x.width))
            part += float(dy[s.y.at(n, p, q, k)]) * float(x[s.x.at(n, Index(row), Index(column), channel)]);
        }
        sum += double(part);
      }
    dw[i] = float(sum);
  });
}

template <class T>
class DirectPlan : public ConvolutionPlan {
 public:
  DirectPlan(const Convolution& convolution, Pass pass) : sizes_(convolution), pass_(pass) {}

  int64_t workspace_bytes() const override { return 0; }

  void run(Context& context, const void* its_x, const void* its_weight, const void* its_y,
           std::byte*) const override {
    const Stream stream = stream_of(context);
    auto *x = static_cast<const T*>(its_x), *weight = static_cast<const T*>(its_weight),
         *y = static_cast<const T*>(its_y);
    switch (pass_) {
      case Pass::forward:
        return forward(stream, sizes_, x, weight, const_cast<T*>(y));
      case Pass::input_gradient:
        return input_gradient(stream, sizes_, weight, y, const_cast<T*>(x));
      case Pass::weight_gradient:
        return weight_gradient(stream, sizes_, x, y, static_cast<float*>(const_cast<void*>(its_weight)));
    }
  }

 private:
  const Sizes sizes_;
  const Pass pass_;
};

}  // namespace

std::shared_ptr<const ConvolutionPlan> plan_directly(const Convolution& convolution, Pass pass) {
  std::shared_ptr<const ConvolutionPlan> plan;
  with_type(convolution.dtype, [&]<class T>() { plan = std::make_shared<DirectPlan<T>>(convolution, pass); });
  return plan;
}

}  // namespace antichain::cuda
