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

// "cuda", or "cuda:…" with how it multiplies: all of one module.
bool is_cuda(std::string_view name) { return name == "cuda" || name.starts_with("cuda:"); }

}  // namespace

const KernelEntry& Backend::entry(std::string_view op_type) const {
  if (auto it = kernels_.find(op_type); it != kernels_.end()) return it->second;
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
  if (is_cuda(name)) {
    reason = load_module("cuda");
    if (reason.empty())
      if (auto it = registry().find(name); it != registry().end()) return *it->second;
    if (!reason.empty()) reason = ": " + reason;
  }
  throw Error(fmt::format("there is no device '{}'{}", name, reason),
              fmt::format("use one of: {}", fmt::join(backend_names(), ", ")), ExitCode::usage);
}

std::string best_backend(std::string& why_not_faster) {
  if (registry().contains("cuda")) return "cuda";
  why_not_faster = load_module("cuda");
  return why_not_faster.empty() ? "cuda" : "cpu";
}

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const auto& [name, b] : registry()) names.push_back(name);
  return names;
}

}  // namespace antichain
