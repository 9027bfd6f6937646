// A Grouped optimiser updates each group of parameters with settings of its own, as the param_groups of
// torch.optim do: another learning rate, as a multiple of the step's, and another weight decay.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/optimiser.h"

namespace antichain {

struct ParameterGroup {
  std::shared_ptr<const Optimiser> optimiser;  // the same as of the other groups, but for its settings
  float rate_factor = 1;                       // times the rate of the step
};

class Grouped : public Optimiser {
 public:
  // The first group has all parameters that are not named. Names are full ones.
  Grouped(std::vector<ParameterGroup> groups, std::map<std::string, size_t, std::less<>> group_of)
      : groups(std::move(groups)), group_of_(std::move(group_of)) {}
  // These groups have the parameters that those of the other one have.
  Grouped(std::vector<ParameterGroup> groups, const Grouped& like)
      : groups(std::move(groups)), group_of_(like.group_of_) {}
  std::string_view name() const override { return groups[0].optimiser->name(); }
  std::string str() const override { return groups[0].optimiser->str(); }
  std::vector<std::string> slots(const ParamSpec& spec) const override {
    return groups[0].optimiser->slots(spec);
  }
  // Returns the index of the parameter's group.
  size_t group_of(std::string_view parameter) const;

  const std::vector<ParameterGroup> groups;

 private:
  const std::map<std::string, size_t, std::less<>> group_of_;
};

// Returns the optimiser as a Grouped one, or nullptr where all parameters are of one group.
const Grouped* grouped(const Optimiser&);
// Returns what follows the gradients, with the settings of the first group: neither Averaged nor Grouped.
const Optimiser& of_one_group(const Optimiser&);

}  // namespace antichain
