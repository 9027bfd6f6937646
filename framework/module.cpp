#include "framework/module.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "framework/paths.h"
#include "framework/version.h"

namespace antichain {
namespace {

// Returns the folder this library was loaded from, so that a moved installation finds its own modules.
std::filesystem::path own_folder() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<const void*>(&load_module), &info) || !info.dli_fname) return {};
  return std::filesystem::path(info.dli_fname).parent_path();
}

// Says what to do about a module that is not beside the library: a build folder can make it, an installation
// can't.
std::string not_there(const std::filesystem::path& folder) {
  if (exists((folder / "CMakeCache.txt").string()))
    return fmt::format("was not built: `cmake --build {} --target antichain_modules` builds it",
                       folder.string());
  return fmt::format("is not installed in {}: install a build of the target antichain_modules",
                     folder.string());
}

// The system's message names the library that is missing, which may be one that the module needs.
std::string cannot_be_loaded(const std::string& why) { return fmt::format("can't be loaded ({})", why); }

// Loads FILE from the library's own folder, otherwise from the system's search path. Where that fails,
// `reason` says why.
void* open(const std::string& file, std::string& reason) {
  const std::filesystem::path own = own_folder() / file;
  if (exists(own.string())) {
    if (void* module = dlopen(own.c_str(), RTLD_NOW | RTLD_LOCAL)) return module;
    reason = cannot_be_loaded(dlerror());
    return nullptr;
  }
  if (void* module = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return module;
  const std::string why = dlerror();
  reason = why.starts_with(file + ": cannot open") ? not_there(own_folder()) : cannot_be_loaded(why);
  return nullptr;
}

// Returns 0 where there is no driver.
int nvidia_gpus() {
  std::error_code none;
  const std::filesystem::directory_iterator gpus("/proc/driver/nvidia/gpus", none);
  return none ? 0 : int(std::distance(begin(gpus), end(gpus)));
}

}  // namespace

std::string load_module(const std::string& name) {
  using Text = const char* (*)();
  const std::string file = fmt::format("libantichain_{}.so", name);
  std::string reason;
  void* module = open(file, reason);
  if (!module) return fmt::format("{} {}", file, reason);
  const auto module_version = reinterpret_cast<Text>(dlsym(module, "antichain_module_version"));
  const auto register_module = reinterpret_cast<Text>(dlsym(module, "antichain_register_module"));
  if (!module_version || !register_module) return fmt::format("{} is no module of this program", file);
  if (std::string(module_version()) != version())
    return fmt::format("{} has version {}, this program {}", file, module_version(), version());
  const char* refusal = register_module();
  return refusal ? fmt::format("{}: {}", file, refusal) : "";
}

// A new engine is one more row of the table.
bool EngineModule::makes(std::string_view name) const {
  return name == device || name.starts_with(device + ":");
}

const std::vector<EngineModule>& engine_modules() {
  static const std::vector<EngineModule> table = {
      {.title = "CUDA",
       .device = "cuda",
       .other_devices = {"cuda:tf32"},
       .choice = "cuda, or cuda:tf32 with rounded factors",
       .library = "cuda",
       .needs = "GPU",
       .present = nvidia_gpus},
  };
  return table;
}

const EngineModule* module_of(std::string_view device) {
  const auto& all = engine_modules();
  const auto found = std::ranges::find_if(all, [&](const EngineModule& m) { return m.makes(device); });
  return found == all.end() ? nullptr : &*found;
}

std::string module_devices() {
  std::vector<std::string_view> names;
  for (const EngineModule& module : engine_modules()) names.push_back(module.device);
  return fmt::format("{}", fmt::join(names, " or "));
}

}  // namespace antichain
