// This table lists the engines that come in modules. A new engine is one more row.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "framework/module.h"

namespace antichain {
namespace {

// Returns 0 where there is no driver.
int nvidia_gpus() {
  std::error_code none;
  const std::filesystem::directory_iterator gpus("/proc/driver/nvidia/gpus", none);
  return none ? 0 : int(std::distance(begin(gpus), end(gpus)));
}

}  // namespace

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
