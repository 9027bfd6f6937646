// A backend is a device type: memory, copies, and a table from operator type to kernels.
//
// Backends register by name. "cpu" (oneDNN) is always there; "cuda" is a module loaded at run time. Looking
// up what is not there throws one clear sentence, so that no header and no logic needs an #ifdef.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/context.h"
#include "framework/op.h"

namespace antichain {

struct Node;

// How an engine carries out one type of operator. `offered` are the layouts the inputs come in; the precision
// is the one that the network shall have: an operator that is float32 in all of them (a loss) lowers to that.
struct KernelEntry {
  std::function<Lowering(const Op&, std::span<const Shape> x, std::span<const Layout> offered, Precision)>
      lower;
  std::function<std::unique_ptr<Kernel>(const Op&, std::span<const TensorSpec> x, const Lowering&)> make;
  // Whether it also carries out an operator with others fused into it (Op::then). Empty: it does not.
  std::function<bool(const Op& fused)> fuses = {};
};

struct Rate;
struct SgdOptions;

// A parameter and what its update needs: float32, plain or in one layout all three. `momentum` may be empty.
struct Trained {
  Tensor w, dw, momentum;
  Tensor rounded;  // where w is to be stored besides, in a type of fewer bits; may be empty
};

// One pass of the optimiser over many parameters at once.
class Update {
 public:
  virtual ~Update() = default;
  virtual void run(Context&, const SgdOptions&, const Rate&) const = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;         // "cpu"
  virtual std::string description() const = 0;  // "AMD EPYC …, AVX-512, oneDNN 2.6.3": goes into profiles
  // What it chooses layouts and kernels by, as names and values. Ranks that exchange tensors must have all of
  // it alike, or they would read each other's in another order; with it their last bits are alike, too.
  virtual std::vector<std::pair<std::string, std::string>> chooses_by() const { return {}; }
  virtual std::shared_ptr<std::byte> allocate(int64_t bytes) const = 0;
  // Whether the host can read and write what `allocate` gives.
  virtual bool host_memory() const { return true; }
  // What every context of this backend carries (Context::resources); nothing unless it says otherwise.
  virtual std::shared_ptr<void> open(int /*local_rank*/) const { return nullptr; }
  // Same spec, host or device memory; behind all that was started in the context, and done when it returns.
  virtual void copy(const Context&, const Tensor& from, const Tensor& to) const = 0;
  // Error, with the reason, when this machine cannot compute in that precision: nothing falls back silently.
  virtual void require(Precision) const;
  // Called once by each rank's thread before it runs kernels (thread count, device).
  virtual void enter(const Context&) const {}
  // Whether a floating-point tensor holds neither infinities nor NaN, where the device can tell faster than a
  // copy takes.
  virtual std::optional<bool> all_finite(const Context&, const Tensor&) const { return std::nullopt; }
  // y += x, same spec: how the gradients of a tensor's consumers are folded.
  virtual void add(Context&, const Tensor& x, const Tensor& y) const = 0;
  // One pass of stochastic gradient descent over one parameter (framework/sgd.h). `momentum` may be empty.
  virtual void sgd(Context&, const SgdOptions&, const Rate&, const Tensor& w, const Tensor& dw,
                   const Tensor& momentum) const = 0;
  // The same for all of these by one launch, where launching each costs more than its work: nullptr where it
  // does not.
  virtual std::unique_ptr<Update> update_of(const Context&, const std::vector<Trained>&) const {
    return nullptr;
  }

  // Error naming the operator, the backend and the operators it has.
  const KernelEntry& entry(std::string_view op_type) const;
  Tensor tensor(const TensorSpec& spec) const { return {spec, allocate(spec.bytes())}; }

 protected:
  std::map<std::string, KernelEntry, std::less<>> kernels_;
};

void register_backend(std::unique_ptr<Backend>);
// How the device of this name ("cpu") carries out a type of operator from outside: call it before the program
// runs (examples/own_operator). Error where a type has two kernels, the engine's own among them.
void register_kernel(const std::string& device, const std::string& op_type, KernelEntry);
// Error listing the registered backends, with the reason why a known module could not be loaded.
const Backend& backend(std::string_view name);
// What "auto" means here: the first engine of the table in framework/module.h whose module finds a device,
// else "cpu" and the reasons.
std::string best_backend(std::string& why_not_faster);
std::vector<std::string> backend_names();

}  // namespace antichain
