// An operator is an immutable description; a kernel carries it out. Neither owns a tensor.
//
// Inputs, weights, buffers, outputs and the stash for backward come in as arguments, so that one operator
// serves every micro-batch in flight, and ranks that are threads.
//
//   Op::infer          what every device agrees on: output shape, parameters, buffers, statistics, FLOPs
//   Lowering           what an engine adds: layouts, precision, what backward re-reads, the stash (static as
//                      well)
//   Kernel             the engine's code for one node: forward, and backward in two halves
//                      that can be asked for separately: the input gradient (dx) and
//                      the weight gradient (dw)
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/initialise.h"
#include "framework/precision.h"
#include "framework/step_numbers.h"
#include "framework/tensor.h"

namespace antichain {

class Context;

// A ParamSpec is one parameter or buffer of an operator; its full name is "node.name"
// ("layer1.0.conv1.weight"), or "node" where its own name is empty.
struct ParamSpec {
  std::string name;
  Shape shape;  // logical: O x I x H x W for convolutions, O x I for linear, C for vectors
  Initialiser init;
  DType dtype = DType::f32;
  // Of a parameter: whether it is trained. The graph sets it. A frozen parameter has neither a gradient nor
  // slots, and no update changes it.
  bool trained = true;
  // The operator says whether the parameter is the matrix of a linear layer within the network. The graph
  // takes that back for a layer from which a loss is computed, and for a matrix that an operator of another
  // kind has, too.
  bool hidden_matrix = false;
  // Of a parameter that an earlier node has, too: that one's full name, which is then the full name of both.
  std::string of = {};
};

enum class Role { input, compute, loss };

// An operator wants of an input numbers to compute with, integers, or nothing but how many samples there are.
// Integers are labels, rows, documents or positions; they stay int32. Numbers are converted to the type that
// activations are stored in.
enum class Wants { numbers, integers, samples };

struct Signature {
  TensorSpec y;                        // layout plain, float32; the engine's Lowering refines it
  std::vector<ParamSpec> params;       // trained by the optimiser, unless they are frozen
  std::vector<ParamSpec> buffers;      // state that is not trained (running mean and variance)
  std::vector<TensorSpec> statistics;  // per micro-batch, kept until the step: what buffers absorb
  double loss_weight = 0;              // of a loss node: its share in the training objective
  double forward_flops = 0;            // multiply-add counts as 2
};

class Op {
 public:
  virtual ~Op() = default;
  virtual std::string_view type() const = 0;  // the key of the kernel table: "conv2d"
  virtual std::string str() const = 0;        // type and options, canonical: part of the graph's hash
  virtual Role role() const { return Role::compute; }
  virtual Wants wants(size_t /*input*/, size_t /*inputs*/) const { return Wants::numbers; }
  // Throws Error (naming the shapes) when the inputs do not fit.
  virtual Signature infer(std::span<const Shape> x) const = 0;
  // Returns the operator that computes `next` in one pass, whose input of this number is this one's output,
  // or nullptr where there is none. Its inputs are this operator's, then the other inputs of `next`. See
  // framework/fuse.h.
  virtual std::shared_ptr<const Op> then(const Op& /*next*/, int /*input*/) const { return nullptr; }
};

// A Lowering is what an engine adds to a signature. It is a pure function of operator, shapes and instruction
// set (promise 1).
struct Lowering {
  std::vector<Layout> x;                     // the layout wanted of each input
  Layout y = Layout::plain;                  // the layout produced
  std::vector<Layout> params;                // the layout each parameter (and its gradient) lives in
  Precision precision = Precision::float32;  // x and y that are not integers are of its storage type
  std::vector<TensorSpec> prepared;          // what Kernel::prepare makes of the parameters
  bool prepared_rounded = false;             // prepared[i] is params[i] as it lies, rounded to bf16
  std::vector<TensorSpec> stash;             // written by forward, read by backward of the same micro-batch
  bool keeps_x = false, keeps_y = false;     // whether backward re-reads the inputs, the output
  int kept_inputs = 1 << 30;                 // of keeps_x: only the first so many inputs
  bool adds_dx = false;                      // whether backward obeys Backward::dx_into
  bool adds_dy = false;                      // whether backward takes a second term of dy (Backward::dy_term)
  int64_t workspace_bytes = 0;               // the scratch that one call needs

  bool keeps(size_t input) const { return keeps_x && int(input) < kept_inputs; }
};

enum class Mode { train, evaluate };

// A DropoutKey and the sample's index within the micro-batch key a dropout mask.
struct DropoutKey {
  uint64_t seed = 0;
  uint64_t step = 0;
  uint64_t first_sample = 0;          // position of the micro-batch's first sample within the batch
  const StepNumbers* live = nullptr;  // in the device's memory: its step replaces `step`
};

struct Forward {
  std::span<const Tensor> x, params, prepared, buffers;
  Tensor y;                       // overwritten
  std::span<const Tensor> stash;  // overwritten (train mode)
  std::span<const Tensor> statistics;
  Mode mode = Mode::train;
  DropoutKey dropout;
};

enum class Into { overwrite, accumulate };

// Tensors that the lowering does not keep are empty in `x` and `y`. dx[i] and dw[i] have the layout of x[i]
// and params[i]. An empty span (or an empty tensor in it) means "not wanted now".
struct Backward {
  std::span<const Tensor> x, params, prepared;
  Tensor y, dy;  // dy is empty for a loss node
  // A second term of dy, of a lowering that adds_dy; may be empty. The kernel adds it to dy, rounds the sum
  // for storage, as Backend::add would have, and may leave the sum in dy.
  Tensor dy_term;
  std::span<const Tensor> stash, statistics;
  std::span<const Tensor> dx;       // overwritten, or as dx_into says; no two of them the same tensor
  std::span<const Tensor> dw;       // overwritten by a step's first micro-batch, then accumulated
  Into into = Into::accumulate;     // of dw
  std::span<const Into> dx_into{};  // per input, of a lowering that adds_dx; empty: all overwritten
  float loss_scale = 1;             // of a loss node: loss_weight / batch size
  DropoutKey dropout;
  // The parameters that the forward read, where they are not `params`. What a kernel did not keep of the
  // forward it computes again by these, and gradients of inputs are by `params`. Empty: by `params`.
  std::span<const Tensor> forward_params{};

  std::span<const Tensor> made_by() const { return forward_params.empty() ? params : forward_params; }
  Into into_dx(size_t input) const { return dx_into.empty() ? Into::overwrite : dx_into[input]; }
};

// RunningAverages is the rule of a kernel whose statistics are a mean and a variance per channel, and whose
// buffers are their running averages and the number of micro-batches:
// running = (1 − momentum) · running + momentum · statistic, where the variance is times `unbias`.
struct RunningAverages {
  float momentum = 0, unbias = 1;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void forward(Context&, const Forward&) const = 0;
  virtual void backward(Context&, const Backward&) const {}
  // Converts the parameters to what the passes read (weights in bf16, in an engine's own format). It is
  // called once after each change of the parameters, so that no micro-batch has to convert them.
  virtual void prepare(Context&, std::span<const Tensor> /*params*/,
                       std::span<const Tensor> /*prepared*/) const {}
  // Folds the statistics of a step's micro-batches into the buffers, in order: statistics[m] are those of
  // micro-batch m.
  virtual void absorb(Context&, std::span<const std::vector<Tensor>> /*statistics*/,
                      std::span<const Tensor> /*buffers*/) const {}
  // Returns the rule by which `absorb` works, where it is that of running averages. An engine may then absorb
  // for several kernels at once.
  virtual std::optional<RunningAverages> running_averages() const { return std::nullopt; }
  // Returns true where dx and dw come out of one computation (batch norm): asking for dx then computes dw
  // too, and both must be requested together.
  virtual bool inseparable() const { return false; }
};

}  // namespace antichain
