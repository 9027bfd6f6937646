#include "framework/backend.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "framework/error.h"
#include "framework/module.h"

namespace antichain {
namespace {

std::map<std::string, std::unique_ptr<Backend>, std::less<>>& registry() {
  static std::map<std::string, std::unique_ptr<Backend>, std::less<>> backends;
  return backends;
}

// These are kernels of operators from outside, by device and type of operator.
using OwnKernels = std::map<std::pair<std::string, std::string>, KernelEntry>;
OwnKernels& own_kernels() {
  static OwnKernels kernels;
  return kernels;
}

}  // namespace

void register_kernel(const std::string& device, const std::string& op_type, KernelEntry entry) {
  if (!own_kernels().try_emplace({device, op_type}, std::move(entry)).second)
    throw Error(fmt::format("a kernel of operator '{}' for device '{}' is registered twice", op_type, device),
                "give each operator a type of its own", ExitCode::usage);
}

const KernelEntry& Backend::entry(std::string_view op_type) const {
  const auto shipped = kernels_.find(op_type);
  const auto own = own_kernels().find({name(), std::string(op_type)});
  if (shipped != kernels_.end() && own != own_kernels().end())
    throw Error(
        fmt::format("device '{}' has a kernel of its own for operator '{}', and another was registered",
                    name(), op_type),
        "give the operator from outside another type", ExitCode::usage);
  if (shipped != kernels_.end()) return shipped->second;
  if (own != own_kernels().end()) return own->second;
  std::vector<std::string_view> known;
  for (const auto& [type, kernel] : kernels_) known.push_back(type);
  throw Error(fmt::format("device '{}' has no kernel for operator '{}'", name(), op_type),
              known.empty() ? "it has none at all; use --device cpu"
                            : fmt::format("it has {}", fmt::join(known, ", ")));
}

void Backend::require(Precision precision) const {
  if (precision == Precision::float32) return;
  throw Error(fmt::format("device '{}' does not compute in {}", name(), name_of(precision)),
              "use --precision float32", ExitCode::usage);
}

void register_backend(std::unique_ptr<Backend> b) {
  const std::string name = b->name();
  registry().try_emplace(name, std::move(b));
}

const Backend& backend(std::string_view name) {
  if (auto it = registry().find(name); it != registry().end()) return *it->second;
  std::string reason;
  if (const EngineModule* module = module_of(name)) {
    reason = load_module(module->library);
    if (reason.empty())
      if (auto it = registry().find(name); it != registry().end()) return *it->second;
    if (!reason.empty()) reason = ": " + reason;
  }
  throw Error(fmt::format("there is no device '{}'{}", name, reason),
              fmt::format("use one of: {}", fmt::join(backend_names(), ", ")), ExitCode::usage);
}

std::string best_backend(std::string& why_not_faster) {
  std::vector<std::string> reasons;
  for (const EngineModule& module : engine_modules()) {
    if (registry().contains(module.device)) return module.device;
    const std::string reason = load_module(module.library);
    if (reason.empty()) return module.device;
    reasons.push_back(reason);
  }
  why_not_faster = fmt::format("{}", fmt::join(reasons, "; "));
  return "cpu";
}

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const auto& [name, b] : registry()) names.push_back(name);
  return names;
}

}  // namespace antichain
