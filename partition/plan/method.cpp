#include "partition/plan/method.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

#include "framework/error.h"

namespace antichain {
namespace {

constexpr std::array<std::pair<Method, std::string_view>, 8> table = {{
    {Method::antichain, "antichain"},
    {Method::cudasize, "cudasize"},
    {Method::hashrate, "hashrate"},
    {Method::handsplit, "handsplit"},
    {Method::uniform, "uniform"},
    {Method::block, "block"},
    {Method::pipedream, "pipedream"},
    {Method::data_parallel, "data-parallel"},
}};

}  // namespace

std::string_view name_of(Method method) {
  for (const auto& [known, name] : table)
    if (known == method) return name;
  ANTICHAIN_CHECK(false, "every method has a name");
  return "";
}

Method method(std::string_view name) {
  for (const auto& [method, its_name] : table)
    if (its_name == name) return method;
  throw Error(fmt::format("there is no planner called \"{}\"", name),
              fmt::format("choose one of {}", fmt::join(method_names(), ", ")), ExitCode::usage);
}

const std::vector<Method>& methods() {
  static const std::vector<Method> all = [] {
    std::vector<Method> methods;
    for (const auto& [method, name] : table) methods.push_back(method);
    return methods;
  }();
  return all;
}

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (const auto& [method, name] : table) names.emplace_back(name);
  return names;
}

}  // namespace antichain
