// What a plan's step is made of adds up to it, and what binds is what the network was made for.
#include "app/report/explanation.h"

#include <gtest/gtest.h>

#include "tests/pipeline/planning/networks.h"

namespace antichain::test {
namespace {

PlanTask task_for(Cluster cluster) {
  return {
      .options = {
          .stages = 2, .cluster = std::move(cluster), .objective = Objective::makespan, .microbatches = 8}};
}

std::string explained(const Profile& profile, const PlanTask& task) {
  return explain(plan_here(profile, task), profile, task);
}

// Returns the milliseconds of the line that begins with these words.
double of(const std::string& words, const std::string& text) {
  const size_t at = text.find(words);
  EXPECT_NE(at, std::string::npos) << words << " in\n" << text;
  return at == std::string::npos ? 0 : std::stod(text.substr(at + words.size()));
}

const NodeCost even = {
    .forward_s = 1e-3, .backward_input_s = 2e-3, .output_bytes = 1'000'000, .stash_bytes = 100};

TEST(Explanation, DividesTheStep) {
  const Profile profile = chain(8, even);
  const PlanTask task = task_for(equal_devices(2, {.bytes_per_s = 1e9}));
  const std::string text = explained(profile, task);
  EXPECT_DOUBLE_EQ(of("load, shared equally by the devices", text), 8 * 12);
  EXPECT_NEAR(of("load, shared equally by the devices", text) + of("uneven stages", text) +
                  of("fill, drain and updates", text) + of("messages", text),
              plan_here(profile, task).step_s * 1e3, 0.02);  // four roundings to hundredths
  EXPECT_LT(of("one more device", text), plan_here(profile, task).step_s * 1e3);
  EXPECT_EQ(text.find("memory without a limit"), std::string::npos) << "there is none";
}

TEST(Explanation, NamesWhatBinds) {
  const auto binds = [](const std::string& what, const Profile& profile, const Cluster& cluster) {
    const std::string text = explained(profile, task_for(cluster));
    EXPECT_NE(text.find("What binds is " + what + "."), std::string::npos) << text;
  };
  binds("the round trip of a micro-batch", chain(8, even), equal_devices(2, {}));
  binds("the link", chain(8, even), equal_devices(2, {.bytes_per_s = 1e8}));
  binds("the cut, which is uneven", chain(3, even), equal_devices(2, {}));
  Profile heavy = chain(8, even);  // two micro-batches of the first half do not fit
  for (size_t n = 2; n < 6; ++n) heavy.nodes[n].cost.stash_bytes = 1000;
  for (ProfileNode& node : heavy.nodes) node.cost.output_bytes = 1;
  binds("the cut, which is uneven, and memory", heavy, equal_devices(2, {}, 6300));
}

}  // namespace
}  // namespace antichain::test
