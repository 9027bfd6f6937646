// Multiplies matrices directly by their formula, a thread per element of the result, summed in double. It
// replaces cuBLASLt where there is no device, or where a user wants to find out whether cuBLASLt is to blame
// (framework/cuda/switches.h).
#include "framework/cuda/launch.h"
#include "layers/cuda/gemm.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

template <class T, class U>
void multiply(Stream stream, const GemmShape& s, const T* a, const T* b, U* c) {
  for_each(stream, s.m * s.n, [=] ANTICHAIN_DEVICE(Index element) {
    const int64_t i = element / Index(s.n), j = element % Index(s.n);  // divided in 32 bits
    double sum = s.adds ? double(float(c[element])) : 0;
    for (int64_t k = 0; k < s.k; ++k)
      sum += double(float(a[s.transpose_a ? k * s.m + i : i * s.k + k])) *
             double(float(b[s.transpose_b ? j * s.k + k : k * s.n + j]));
    c[element] = U(float(sum));
  });
}

class DirectGemm : public Gemm {
 public:
  explicit DirectGemm(const GemmShape& shape) : shape_(shape) {}
  int64_t workspace_bytes() const override { return 0; }
  void run(Context& context, const void* a, const void* b, void* c, std::byte*) const override {
    with_type(shape_.factors, [&]<class T>() {
      with_type(shape_.product, [&]<class U>() {
        multiply(stream_of(context), shape_, static_cast<const T*>(a), static_cast<const T*>(b),
                 static_cast<U*>(c));
      });
    });
  }

 private:
  const GemmShape shape_;
};

}  // namespace

std::unique_ptr<const Gemm> make_direct_gemm(const GemmShape& shape) {
  return std::make_unique<DirectGemm>(shape);
}

}  // namespace antichain::cuda
