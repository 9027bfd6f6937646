// Any bytes may be a plan.json, for a network of indices, for one of names, and for one that is not known.
#include "partition/plan/plan.h"
#include "tests/fuzz/fuzz.h"

namespace antichain {
namespace {

// image -> a -> b -> c, a -> c
Profile network(bool ids_are_names) {
  Profile profile;
  profile.model = "m";
  profile.graph_hash = "h";
  profile.ids_are_names = ids_are_names;
  const NodeCost cost = {.forward_s = 1e-3, .backward_input_s = 2e-3, .output_bytes = 100, .param_bytes = 7};
  profile.nodes = {{"image", "Input", Role::input, {}, false, {.output_bytes = 3}},
                   {"a", "work", Role::compute, {0}, true, cost},
                   {"b", "work", Role::compute, {1}, true, cost},
                   {"c", "work", Role::loss, {1, 2}, true, cost}};
  return profile;
}

}  // namespace
}  // namespace antichain

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace antichain;
  fuzz(data, size, [](const std::string& text) { plan_hash(plan_from_json(text, "fuzz")); });
  for (const bool ids_are_names : {false, true}) {
    static const Profile networks[] = {network(false), network(true)};
    const Profile& profile = networks[ids_are_names];
    const auto read = [&](const std::string& text) { return plan_from_json(text, "fuzz", profile); };
    const auto write = [&](const Plan& plan) { return to_json(plan, profile); };
    fuzz(data, size, [&](const std::string& text) { expect_round_trip(write(read(text)), read, write); });
  }
  return 0;
}
