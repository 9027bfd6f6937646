// These tests read the profiles that are shipped for trying out the planning, whichever there are. They are
// of the present networks, and there is one of each model of the publication.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "app/obtain/lowered_network.h"
#include "framework/backend.h"
#include "framework/json.h"
#include "layers/cpu/backend.h"
#include "partition/plan/stage_cost.h"
#include "partition/profile/read_profile.h"
#include "partition/search/stage_fitter.h"
#include "pipeline/planning/planning.h"
#include "pipeline/schedule/policy.h"

namespace antichain {
namespace {

// The publication's.
constexpr const char* paper_models[] = {"vgg16",       "resnet18",     "resnet50",   "resnet101",
                                        "alexnet",     "resnext50",    "resnext101", "inception_v3",
                                        "densenet121", "squeezenet1_0"};

const std::string folder = std::string(ANTICHAIN_SOURCE_DIR) + "/docs/profiles/cpu/";

Profile shipped(const std::string& model) {
  const std::string file = folder + model + ".json";
  return read_profile(read_file(file), file);
}

std::set<std::string> models() {
  std::set<std::string> all(std::begin(paper_models), std::end(paper_models));
  for (const auto& file : std::filesystem::directory_iterator(folder))
    if (file.path().extension() == ".json") all.insert(file.path().stem());
  return all;
}

TEST(ShippedProfiles, CanBePlanned) {
  for (const std::string& model : models()) {
    const Profile profile = shipped(model);
    EXPECT_EQ(profile.model, model);
    EXPECT_GT(profile.link.bytes_per_s, 0) << model << ": two ranks measured it";
    const Plan plan = plan_network(profile, {.stages = 4, .objective = Objective::compute}, Method::antichain,
                                   Policy::one_f_one_b);
    EXPECT_EQ(plan.stages.size(), 4u) << model;
    EXPECT_TRUE(plan.proved_optimal()) << model;
  }
}

TEST(ShippedProfiles, HaveProvedPlansOfFourStages) {
  for (const std::string model : {"densenet121", "resnet18", "resnet50", "resnext50", "squeezenet1_0"}) {
    const Profile profile = shipped(model);
    const PlanOptions options{
        .stages = 4, .cluster = one_link(profile.link), .objective = Objective::makespan, .microbatches = 8};
    const Plan plan = plan_network(profile, options, Method::antichain, Policy::one_f_one_b);
    EXPECT_TRUE(plan.proved_optimal()) << model << ": " << plan.gap();
  }
}

// Between the fewest bytes and those with which nothing is recomputed, the search finds for each limit what
// certainly takes least time, but for the first two of Inception.
TEST(ShippedProfiles, HaveProvedMemoryCurvesOnOneDevice) {
  constexpr int limits = 12;  // as plan --memory-curve has
  for (const std::string model : {"alexnet", "densenet121", "inception_v3", "resnet18", "resnet50",
                                  "resnet101", "resnext50", "resnext101", "squeezenet1_0", "vgg16"}) {
    const Profile profile = shipped(model);
    const std::vector<int> nodes = one_stage(profile).stages[0].nodes;
    const StageSeat seat{.in_flight = 1};
    const int64_t least = StageFitter(profile, false).least(nodes, seat).bytes,
                  most = memory_bytes(sum_of(profile, nodes), 1, 1);
    for (int i = model == "inception_v3" ? 2 : 0; i < limits; ++i) {
      StageSeat limited = seat;
      limited.memory_bytes = least + (most - least) * i / (limits - 1);
      const StageFitter fitter(profile, false);  // each point is a plan of its own
      const RecomputeFind& found = fitter.fit(nodes, limited);
      ASSERT_TRUE(found.choice.has_value()) << model << ", point " << i;
      EXPECT_TRUE(found.exact) << model << ", point " << i;
    }
  }
}

TEST(ShippedProfiles, AreOfThePresentNetworks) {
  register_cpu_backend();
  if (backend("cpu").description().find("AVX-512") == std::string::npos)
    GTEST_SKIP() << "the shipped profiles are of layouts for AVX-512, which this machine has not";
  for (const std::string& model : models()) {
    const Profile profile = shipped(model);
    const NetworkOptions options{.model = model, .batch = profile.microbatch, .microbatches = 1};
    EXPECT_EQ(profile.graph_hash, lowered_network(options, {}).hash())
        << model << " has changed: docs/profiles/cpu/README.md says how to measure it again";
  }
}

}  // namespace
}  // namespace antichain
