#include "pipeline/run/plain_copy.h"

#include <algorithm>

#include "framework/backend.h"
#include "framework/bf16.h"

namespace antichain {

Tensor plain_on_host(const Context& context, const Tensor& y) {
  const Backend& backend = context.backend();
  Tensor host = y;
  if (!backend.host_memory()) {
    host = Tensor::host(y.spec());
    backend.copy(context, y, host);
  }
  if (y.dtype() == DType::bf16) {
    const Tensor wide = Tensor::host({y.shape(), DType::f32, y.layout()});
    std::copy_n(host.data<Bf16>(), host.elements(), wide.data<float>());
    host = wide;
  }
  if (y.layout() == Layout::plain) return host;
  const Tensor plain = Tensor::host({y.shape()});
  relayout(host, plain);
  return plain;
}

}  // namespace antichain
