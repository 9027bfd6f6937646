// A backend is a device type: memory, copies, a table from operator type to kernels, and one from optimiser
// to updates.
//
// Backends register by name. "cpu" (oneDNN) is always there; "cuda" is a module loaded at run time. Looking
// up a backend that is missing throws one clear sentence, so that no header and no logic needs an #ifdef.
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
#include "framework/optimiser.h"

namespace antichain {

struct Node;

// A KernelEntry says how an engine carries out one type of operator. `offered` are the layouts the inputs
// come in. `precision` is the network's; an operator that is float32 in every precision (a loss) lowers to
// float32.
struct KernelEntry {
  std::function<Lowering(const Op&, std::span<const Shape> x, std::span<const Layout> offered, Precision)>
      lower;
  std::function<std::unique_ptr<Kernel>(const Op&, std::span<const TensorSpec> x, const Lowering&)> make;
  // Returns whether the kernel also carries out an operator with others fused into it (Op::then). An empty
  // function means no.
  std::function<bool(const Op& fused)> fuses = {};
};

// Absorbed is what Kernel::absorb is called with, for one node.
struct Absorbed {
  const Kernel* kernel;
  std::vector<std::vector<Tensor>> statistics;  // of each micro-batch
  std::vector<Tensor> buffers;
};

// An Absorption does what Kernel::absorb does, for several nodes at once.
class Absorption {
 public:
  virtual ~Absorption() = default;
  virtual void run(Context&) const = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;         // "cpu"
  virtual std::string description() const = 0;  // "AMD EPYC …, AVX-512, oneDNN 2.6.3": goes into profiles
  // Returns the facts by which this backend chooses layouts and kernels, as names and values. Ranks that
  // exchange tensors must agree in all of them, or they would read each other's tensors in another order.
  // Where they agree, the last bits are equal, too.
  virtual std::vector<std::pair<std::string, std::string>> chooses_by() const { return {}; }
  virtual std::shared_ptr<std::byte> allocate(int64_t bytes) const = 0;
  // Returns whether the host can read and write the memory that `allocate` returns.
  virtual bool host_memory() const { return true; }
  // Returns what every context of this backend carries (Context::resources). The default is nothing.
  virtual std::shared_ptr<void> open(int /*local_rank*/) const { return nullptr; }
  // Copies a tensor to one of the same spec, in host or device memory. The copy starts after all work that
  // was started in the context, and is finished when the call returns.
  virtual void copy(const Context&, const Tensor& from, const Tensor& to) const = 0;
  // Throws Error, with the reason, when this machine cannot compute in that precision. Nothing falls back
  // silently.
  virtual void require(Precision) const;
  // Sets up the calling thread (thread count, device). Each rank's thread calls this once before it runs
  // kernels.
  virtual void enter(const Context&) const {}
  // Returns whether a floating-point tensor holds neither infinities nor NaN. Returns nothing where the
  // device cannot find out faster than by a copy to the host.
  virtual std::optional<bool> all_finite(const Context&, const Tensor&) const { return std::nullopt; }
  // y += x, same spec. Gradients from all consumers of a tensor are added up this way.
  virtual void add(Context&, const Tensor& x, const Tensor& y) const = 0;

  // Returns an Absorption for these nodes, which gives the same bits as Kernel::absorb for each of them.
  // Returns nullptr where the device gains nothing by it.
  virtual std::unique_ptr<Absorption> make_absorption(const Context&, std::vector<Absorbed>) const {
    return nullptr;
  }

  // Throws Error naming the operator, the backend and the operators it has.
  const KernelEntry& entry(std::string_view op_type) const;
  // Returns the engine's update of these parameters. Throws Error naming the optimiser, the backend and the
  // optimisers it has.
  std::unique_ptr<Update> make_update(std::shared_ptr<const Optimiser>, const Context&,
                                      std::vector<Trained>) const;
  Tensor tensor(const TensorSpec& spec) const { return {spec, allocate(spec.bytes())}; }

 protected:
  std::map<std::string, KernelEntry, std::less<>> kernels_;
  std::map<std::string, MakeUpdate, std::less<>> updates_;  // by the optimiser's name
};

void register_backend(std::unique_ptr<Backend>);
// Registers how the device of this name ("cpu") carries out a type of operator from outside. Call it before
// the program runs (examples/own_operator). Throws Error where a type has two kernels, the engine's own
// included.
void register_kernel(const std::string& device, const std::string& op_type, KernelEntry);
// Registers likewise how the device carries out an optimiser from outside.
void register_update(const std::string& device, const std::string& optimiser, MakeUpdate);
// Throws Error listing the registered backends, with the reason why a known module could not be loaded.
const Backend& backend(std::string_view name);
// Returns what "auto" means here: the first engine of the table in framework/module.h whose module finds a
// device; otherwise "cpu", with the reasons in `why_not_faster`.
std::string best_backend(std::string& why_not_faster);
std::vector<std::string> backend_names();

}  // namespace antichain
