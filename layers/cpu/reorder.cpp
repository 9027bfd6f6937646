// Reorder by oneDNN: forward from the producer's layout to the consumer's, backward the other way round.
#include "framework/reorder.h"

#include <algorithm>

#include "layers/cpu/backend.h"
#include "layers/cpu/dnnl.h"

namespace antichain::cpu {
namespace {

Primitive reorder_primitive(const Desc& from, const Desc& to) {
  return {"create a reorder", checked("describe a reorder", [&] {
            return dnnl::reorder::primitive_desc(engine(), from, engine(), to, user_scratchpad());
          })};
}

class ReorderKernel : public Kernel {
 public:
  ReorderKernel(const TensorSpec& x, Layout to)
      : x_(describe(x)),
        y_(describe(TensorSpec{x.shape, x.dtype, to})),
        forward_(reorder_primitive(x_, y_)),
        backward_(reorder_primitive(y_, x_)) {}

  int64_t workspace_bytes() const { return std::max(forward_.scratch_bytes(), backward_.scratch_bytes()); }

  void forward(Context& context, const Forward& f) const override {
    Workspace workspace(context, forward_.scratch_bytes());
    forward_.run(workspace, {{DNNL_ARG_FROM, x_, f.x[0].raw()}, {DNNL_ARG_TO, y_, f.y.raw()}});
  }

  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    Workspace workspace(context, backward_.scratch_bytes());
    backward_.run(workspace, {{DNNL_ARG_FROM, y_, b.dy.raw()}, {DNNL_ARG_TO, x_, b.dx[0].raw()}});
  }

 private:
  Desc x_, y_;
  Primitive forward_, backward_;
};

}  // namespace

KernelEntry reorder_entry() {
  return {[](const Op& op, std::span<const Shape> x, std::span<const Layout> offered) {
            const Layout to = dynamic_cast<const Reorder&>(op).to;
            Lowering l;
            l.x = {offered[0]};
            l.y = to;
            l.workspace_bytes = ReorderKernel({x[0], DType::f32, offered[0]}, to).workspace_bytes();
            return l;
          },
          [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
            return std::make_unique<ReorderKernel>(x[0], dynamic_cast<const Reorder&>(op).to);
          }};
}

}  // namespace antichain::cpu
