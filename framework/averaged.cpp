#include "framework/averaged.h"

#include <fmt/format.h>

namespace antichain {

std::string Average::str() const { return fmt::format("average of the weights with decay {}", decay); }

std::string Averaged::str() const { return fmt::format("{}, {}", of->str(), average->str()); }

std::vector<std::string> Averaged::slots(const ParamSpec& spec) const {
  std::vector<std::string> all = of->slots(spec);
  for (std::string& slot : average->slots(spec)) all.push_back(std::move(slot));
  return all;
}

const Averaged* averaged(const Optimiser& optimiser) { return dynamic_cast<const Averaged*>(&optimiser); }

}  // namespace antichain
