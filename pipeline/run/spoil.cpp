#include "pipeline/run/spoil.h"

#include <algorithm>
#include <limits>

#include "framework/backend.h"
#include "framework/bf16.h"

namespace antichain {

void Spoil::apply(const Context& context, const Node& node, int m, bool gradient,
                  const Tensor& tensor) const {
  if (!fault_ || !tensor) return;
  if (fault_->gradient != gradient || fault_->microbatch != m || fault_->node != node.name) return;
  const Tensor host = Tensor::host(tensor.spec());
  context.backend().copy(context, tensor, host);
  const float nan = std::numeric_limits<float>::quiet_NaN();  // a ReLU might swallow a single one
  if (host.dtype() == DType::bf16)
    std::fill_n(host.data<Bf16>(), host.elements(), Bf16(nan));
  else
    std::fill_n(host.data<float>(), host.elements(), nan);
  context.backend().copy(context, host, tensor);
}

}  // namespace antichain
