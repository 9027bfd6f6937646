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

}  // namespace

const KernelEntry& Backend::entry(std::string_view op_type) const {
  if (auto it = kernels_.find(op_type); it != kernels_.end()) return it->second;
  std::vector<std::string_view> known;
  for (const auto& [type, kernel] : kernels_) known.push_back(type);
  throw Error(fmt::format("device '{}' has no kernel for operator '{}'", name(), op_type),
              known.empty() ? "it has none at all; use --device cpu"
                            : fmt::format("it has {}", fmt::join(known, ", ")));
}

void register_backend(std::unique_ptr<Backend> b) {
  const std::string name = b->name();
  registry().try_emplace(name, std::move(b));
}

const Backend& backend(std::string_view name) {
  if (auto it = registry().find(name); it != registry().end()) return *it->second;
  std::string reason;
  if (name == "cuda") {
    reason = load_module("cuda");
    if (reason.empty()) return *registry().find(name)->second;
    reason = ": " + reason;
  }
  throw Error(fmt::format("there is no device '{}'{}", name, reason),
              fmt::format("use one of: {}", fmt::join(backend_names(), ", ")), ExitCode::usage);
}

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const auto& [name, b] : registry()) names.push_back(name);
  return names;
}

}  // namespace antichain
