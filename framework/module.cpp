#include "framework/module.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "framework/version.h"

namespace antichain {
namespace {

// The folder this library was loaded from, so that a moved installation finds its own modules.
std::filesystem::path own_folder() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<const void*>(&load_module), &info) || !info.dli_fname) return {};
  return std::filesystem::path(info.dli_fname).parent_path();
}

void* open(const std::string& file) {
  if (void* module = dlopen((own_folder() / file).c_str(), RTLD_NOW | RTLD_LOCAL)) return module;
  return dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

std::string load_module(const std::string& device) {
  using Text = const char* (*)();
  const std::string file = fmt::format("libantichain_{}.so", device);
  void* module = open(file);
  if (!module) return fmt::format("{} can't be loaded ({})", file, dlerror());
  const auto module_version = reinterpret_cast<Text>(dlsym(module, "antichain_module_version"));
  const auto register_module = reinterpret_cast<Text>(dlsym(module, "antichain_register_module"));
  if (!module_version || !register_module) return fmt::format("{} is no module of this program", file);
  if (std::string(module_version()) != version())
    return fmt::format("{} has version {}, this program {}", file, module_version(), version());
  const char* reason = register_module();
  return reason ? fmt::format("{}: {}", file, reason) : "";
}

}  // namespace antichain
